-- The other verbs, on one key: what they take or give back. After the numbers of keys come
--   amount (7 bytes), whether the time of the charge is known (1), that time in µs (8, signed)
-- reset (5) is done before the key is looked at; release (6): amount is the lease's id, the time its cost.
--@ apply
local amount, timed, time = unpack('<I7Bi8', requests, position)
if not free[1] then
  answer[2] = 'x'
  return answer
end
local kind = byte(ARGV[2], 2)
local moment = at[1] or now
if verb == 2 then -- refund
  if amount == 0 or kind == 108 or free[1] == limit then
    -- A slot of a leaky bucket given away could be given twice.
  elseif kind == 116 then
    free[1], taken[1] = math.min(limit, free[1] + amount), 0
    if free[1] == limit then part[1] = 0 end
  elseif kind == 102 then
    if timed == 0 or time >= part[1] then
      free[1], taken[1] = math.min(limit, free[1] + amount), 0
    end
  elseif kind == 115 then
    --@ verb refund_slots
  elseif kind == 103 then
    --@ verb refund_log
  end
elseif verb == 6 then -- release
  local leases = more[1]
  local lease = pack('<I7I7', amount, time)
  local ends = leases.meta and redis.call('ZSCORE', KEYS[1], lease)
  if ends and ends - leases.lead > leases.moment then
    redis.call('ZREM', KEYS[1], lease)
    free[1], taken[1], leases.all = free[1] + time, 0, leases.all - time
  else
    answer[2] = '0'
  end
else
  -- Takes without asking: as much as leaves a debt of at most 10^15 tokens (3: settle), or of the limit (4: penalize).
  local room = verb == 3 and most_tokens or limit
  if kind == 116 or kind == 108 then
    if amount > 0 and free[1] - amount >= -room then
      free[1], taken[1] = free[1] - amount, amount
    elseif amount > 0 and (free[1] > -room or free[1] == -room and (part[1] or 0) > 0) then
      free[1], part[1], taken[1] = -room, 0, 0
    end
  else
    amount = math.min(amount, free[1] + room)
    if amount > 0 then free[1], taken[1] = free[1] - amount, amount end
  end
end
--@ refund_slots
local _, _, slots, width = unpack('<BBI2I6', ARGV[2])
local counts = more[1] .. string.rep('\0', 7 * (slots + 1) - #more[1])
if part[1] > 0 and (timed == 0 or (moment - moment % width - (time - time % width)) / width <= slots) then
  taken[1] = 0
  for k = slots, 0, -1 do
    local count = unpack('<I7', counts, 7 * k + 1)
    local back = math.min(count, amount)
    amount, part[1] = amount - back, part[1] - back
    counts = sub(counts, 1, 7 * k) .. pack('<I7', count - back) .. sub(counts, 7 * k + 8)
    if amount == 0 then break end
  end
  more[1] = counts
end
--@ refund_log
local log = more[1]
local _, _, period = unpack('<BBI6', ARGV[2])
if log.used > 0 and (timed == 0 or time + period > moment) then
  amount = math.min(amount, log.used)
  free[1], taken[1], log.last = free[1] + amount, 0, moment
  local kept = log.used - amount
  if log.cut then
    log.live = log.moment
  elseif kept > 0 then
    -- The newest first: what lies behind the entry that holds the last token kept, and of that entry the rest.
    local number, entry = find_entry(1, kept)
    local time, cost, total = unpack('<I7I7I7', entry)
    local rest = (total - log.before) % 4503599627370496 - kept
    redis.call('ZREMRANGEBYRANK', KEYS[1], number + (rest > 0 and 0 or 1), '-1')
    if rest > 0 then
      redis.call('ZADD', KEYS[1], time, pack('<I7I7I7', time, cost - rest, (total - rest) % 4503599627370496))
    end
    if entry == log.first and rest > 0 then log.first = pack('<I7I7I7', time, cost - rest, (total - rest) % 4503599627370496) end
    log.live = time
  end
end
