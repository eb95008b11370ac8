-- Sliding window ('s'). With width = period/slots, a state is the tokens taken in each of slots + 1 slots of time in a
-- row, the last of which holds `at`, the time of the last change:
--   version, kind, slots (2), width (6) | at (7), sum (7), slots + 1 counts (7 each), the oldest first     38 bytes or more
-- Other slots or another width start anew. The argument is the first half, then rate (5).
--@ load
local _, _, slots, width, rate = unpack('<BBI2I6I5', argument)
limit = rate
for i = first, last do
  local value = redis.pcall('GET', KEYS[i])
  answer[i + 2] = value
  local sound = not value or #value >= 38 and sub(value, 1, 2) == sub(argument, 1, 2)
  local sum, old, moment, time, steps = 0, 0, now, nil, slots + 1
  if value and sound then
    local slots0
    slots0, _, time, sum = unpack('<I2I6I7I7', value, 3)
    sound = time < exact and #value == 24 + 7 * (slots0 + 1) and sum <= 2 * most_tokens
    if sub(value, 1, 10) ~= sub(argument, 1, 10) then
      taken[i], value, sum = 0, false, 0
    end
  end
  if value and sound then
    if time > now then
      -- Another server's clock: believed for one period, then cut, and what was taken moves along.
      local most = now + math.max(trusted_lead, slots * width)
      if time > most then time, taken[i] = most, 0 end
      moment, at[i] = time, time
    end
    -- The slots that have left since.
    steps = (moment - moment % width - (time - time % width)) / width
    if steps > slots then
      sum, steps = 0, slots + 1
    else
      local place = 25
      for k = 1, steps do
        local count
        count, place = unpack('<I7', value, place)
        sum = sum - count
      end
      old, place = unpack('<I7', value, place)
      sound = old <= sum
      -- Where there are many counts, that they make up the sum is left to the caller.
      if slots == 1 then sound = sum == old + (steps == 0 and unpack('<I7', value, place) or 0) end
    end
  end
  if not sound then
    answer[i + 2] = type(value) == 'table' and value or foreign
    taken[i] = nil
  else
    -- Of the slot that is leaving, what is left counts, rounded up.
    local left = old > 0 and multiply_divide(moment % width, old, width) or 0
    free[i], part[i] = rate - sum + left, sum
    more[i] = value and steps <= slots and sub(value, 25 + 7 * steps) or ''
  end
end
--@ save
local _, _, slots, width = unpack('<BBI2I6', argument)
for i = first, last do
  if taken[i] then
    local moment, sum = at[i] or now, part[i] + taken[i]
    if sum == 0 then
      redis.call('DEL', KEYS[i])
      if verb > 1 then answer[i + 2] = false end
    else
      -- The counts that are still inside, the oldest first; then slots without any; the last is the present one.
      local counts = more[i] .. string.rep('\0', 7 * (slots + 1) - #more[i])
      counts = sub(counts, 1, 7 * slots) .. pack('<I7', unpack('<I7', counts, 7 * slots + 1) + taken[i])
      local value = pack('<c10I7I7', argument, moment, sum) .. counts
      local newest = slots
      while sub(counts, 7 * newest + 1, 7 * newest + 7) == '\0\0\0\0\0\0\0' do newest = newest - 1 end
      -- Until the newest slot that counts has left.
      local wait = moment - moment % width + (newest + 1) * width - now
      wait = (wait + -wait % 1000) / 1000
      if wait < shortest_expiry then wait = shortest_expiry end
      if wait ~= expiry then expiry, expiry_text = wait, string.format('%d', wait) end
      redis.call('SET', KEYS[i], value, 'PX', expiry_text)
      if verb > 1 then answer[i + 2] = value end
    end
  end
end
