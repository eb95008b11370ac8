// What changes tickets in Redis.
#pragma once

#include <string_view>

namespace sluice::queue {

// One kind of change, of many tickets: KEYS are hashes. ARGV: what is done, how many words each ticket has, and these
// words, of which the first is its life in ms. Answers their states before, or empty texts.
inline constexpr std::string_view kTicketScript = R"(
local verb = ARGV[1]
local words = tonumber(ARGV[2])
local states = {}
for i, key in ipairs(KEYS) do
  local at = 3 + (i - 1) * words
  local before = redis.call('HGET', key, 'state')
  local open = before == 'queued' or before == 'running'
  local changes = true
  states[i] = before or ''
  if verb == 'create' then
    changes = not before
    if changes then
      redis.call('HSET', key, 'state', 'queued', 'queue', ARGV[at + 1], 'created', ARGV[at + 2], 'expected', ARGV[at + 3],
                 'place', ARGV[at + 4])
    end
  elseif verb == 'claim' then
    changes = open or not before
    if not before then
      redis.call('HSET', key, 'state', 'running', 'queue', ARGV[at + 1], 'created', ARGV[at + 2], 'attempts', 1)
    elseif open then
      redis.call('HSET', key, 'state', 'running')
      redis.call('HINCRBY', key, 'attempts', 1)
    end
  elseif verb == 'cancel' then
    changes = before == 'queued'
    if changes then redis.call('HSET', key, 'state', 'cancelled', 'reason', ARGV[at + 1]) end
  else
    changes = open
    if open then redis.call('HSET', key, 'state', verb, 'status', ARGV[at + 1], 'reason', ARGV[at + 2]) end
  end
  if changes then redis.call('PEXPIRE', key, ARGV[at]) end
end
return states
)";

}  // namespace sluice::queue
