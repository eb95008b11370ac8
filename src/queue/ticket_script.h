// What changes tickets in Redis.
#pragma once

#include <string_view>

namespace sluice::queue {

/// One kind of change, of many tickets: KEYS are tickets (ticket_text.h). ARGV: what is done, how many words a ticket
/// has, and these words, once for all tickets or for each:
///
///   claim: a life in ms, and the ticket of what has none; what has one keeps its life
///   refuse: a life in ms, and the ticket of what has none or is queued
///   tried: the number of attempts to be added
///   the letter of the state that it ends in: a life in ms that begins now, the status and the reason; or 0, for the
///   life that it has, and a status of three digits
///
/// Answers the first letters of their states before, or '-' for what had none: as one text, since an array of them
/// costs twice as much as all of the rest. What is no ticket counts as none and is left as it is. Heads are
/// overwritten in place, which costs half of storing the whole anew.
inline constexpr std::string_view kTicketScript = R"(
local verb = ARGV[1]
local words = tonumber(ARGV[2])
local step = #ARGV > 2 + words and words or 0
local head = '^([qrdfec]) (' .. string.rep('%d', 10) .. ') [-%d]%d%d+ [^ ]+ %d+ %d+ %d+'
local found = redis.call('MGET', unpack(KEYS))
local changed = {}
local letters = {}
for i, key in ipairs(KEYS) do
  local at = 3 + (i - 1) * step
  local before = found[i]
  if changed[key] then before = redis.call('MGET', key)[1] end
  local state, attempts
  if before then state, attempts = string.match(before, head) end
  letters[i] = state or '-'
  if verb == 'claim' then
    if state == 'q' then
      redis.call('SETRANGE', key, '0', 'r 0000000001')
    elseif state == 'r' then
      redis.call('SETRANGE', key, '0', string.format('r %010d', math.min(attempts + 1, 4294967295)))
    elseif not state then
      redis.call('SET', key, ARGV[at + 1], 'PX', ARGV[at], 'NX')
    end
  elseif verb == 'refuse' then
    if state == 'q' then
      redis.call('SET', key, ARGV[at + 1], 'PX', ARGV[at])
    elseif not state then
      redis.call('SET', key, ARGV[at + 1], 'PX', ARGV[at], 'NX')
    end
  elseif verb == 'tried' then
    if state == 'r' then
      local tries = math.min(math.max(attempts + ARGV[at], 0), 4294967295)
      redis.call('SETRANGE', key, '0', string.format(tries == 0 and 'q %010d' or 'r %010d', tries))
    end
  elseif state == 'q' or state == 'r' and verb ~= 'c' then
    local new = verb .. ' ' .. attempts .. ' ' .. ARGV[at + 1]
    if ARGV[at] == '0' then
      redis.call('SETRANGE', key, '0', new)
    else
      redis.call('SET', key, new .. string.sub(before, 17) .. ARGV[at + 2], 'PX', ARGV[at])
    end
  end
  changed[key] = true
end
return table.concat(letters)
)";

}  // namespace sluice::queue
