// What changes tickets in Redis.
#pragma once

#include <string_view>

namespace sluice::queue {

// One kind of change, of many tickets: KEYS are hashes. ARGV: what is done, how many words a ticket has, and these
// words, of which the first is its life in ms: once for all tickets, or for each. Answers the first letters of their
// states before, or '-' for what had none: as one text, since an array of them costs twice as much as all of the rest.
// Numbers are written as texts, which need not be made first.
inline constexpr std::string_view kTicketScript = R"(
local verb = ARGV[1]
local words = tonumber(ARGV[2])
local step = 0
if #ARGV > 2 + words then step = words end
local states = {}
for i, key in ipairs(KEYS) do
  local at = 3 + (i - 1) * step
  local before = redis.call('HGET', key, 'state')
  local open = before == 'queued' or before == 'running'
  local changes = true
  states[i] = before and string.sub(before, 1, 1) or '-'
  if verb == 'create' then
    changes = not before
    if changes then
      redis.call('HSET', key, 'state', 'queued', 'queue', ARGV[at + 1], 'created', ARGV[at + 2], 'expected', ARGV[at + 3],
                 'place', ARGV[at + 4])
    end
  elseif verb == 'claim' then
    -- What has a ticket keeps its life: it lasts as long as that of a new one would.
    changes = not before
    if before == 'queued' then
      redis.call('HSET', key, 'state', 'running', 'attempts', '1')
    elseif before == 'running' then
      redis.call('HINCRBY', key, 'attempts', '1')
    elseif changes then
      redis.call('HSET', key, 'state', 'running', 'queue', ARGV[at + 1], 'created', ARGV[at + 2], 'attempts', '1')
    end
  elseif verb == 'tried' then
    changes = false
    if before == 'running' and redis.call('HINCRBY', key, 'attempts', ARGV[at + 1]) == 0 then
      redis.call('HSET', key, 'state', 'queued')
    end
  elseif verb == 'cancel' then
    changes = before == 'queued'
    if changes then redis.call('HSET', key, 'state', 'cancelled', 'reason', ARGV[at + 1]) end
  else
    changes = open
    if open and ARGV[at + 1] == '0' and ARGV[at + 2] == '' then
      redis.call('HSET', key, 'state', verb)
    elseif open then
      redis.call('HSET', key, 'state', verb, 'status', ARGV[at + 1], 'reason', ARGV[at + 2])
    end
  end
  if changes then redis.call('PEXPIRE', key, ARGV[at]) end
end
return table.concat(states)
)";

}  // namespace sluice::queue
