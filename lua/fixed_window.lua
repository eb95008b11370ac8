-- Fixed window ('f'). A state is `used` tokens taken in the window that begins at `start`, last changed at `at`:
--   version, kind, align, shape (6 bytes) | start (8, signed), used (7), at (7)     31 bytes
-- align: 0 epoch, 1 first_hit, 2 calendar. shape: the period in µs; of a calendar, a number that stands for it. Another
-- align or shape starts anew. The argument is the first half, then rate (5), whether denied charges count (1), and for a
-- calendar (8 each, signed) the five edges of four windows in a row, of which the second is the present one by the
-- caller's clock.
--@ load
local _, _, align, period, rate, counts_denied = unpack('<BBBI6I5B', argument)
limit = rate
local edges = align == 2 and { unpack('<i8i8i8i8i8', argument, 16) }
local function count_denied(key, cost, fits)
  cost = math.min(cost, free[key] + most_tokens)
  if not fits and cost > 0 then free[key], taken[key] = free[key] - cost, (taken[key] or 0) + cost end
end
for i = first, last do
  local value = redis.pcall('GET', KEYS[i])
  answer[i + 2] = value
  local start, used, time
  local sound = not value or #value == 31 and sub(value, 1, 2) == sub(argument, 1, 2)
  if value and sound then
    start, used, time = unpack('<i8I7I7', value, 10)
    sound = time < exact and start <= time and start >= -longest and used <= 2 * most_tokens
  end
  if not sound then
    answer[i + 2] = type(value) == 'table' and value or foreign
  else
    if value and sub(value, 1, 9) ~= sub(argument, 1, 9) then
      taken[i], value, start = 0, false, nil
    end
    local moment, edge, stop = now, nil, nil
    --@ fixed_window find
    if value and time > now then
      -- Another server's clock: believed for one window, then cut, and what was taken moves along. Written even when
      -- nothing is taken: else the cut would move along with each call.
      local most = now + math.max(trusted_lead, edge and stop - edge or 0)
      moment, at[i] = math.min(time, most), math.min(time, most)
      local cut = time > most
      --@ fixed_window find
      if cut then
        taken[i] = 0
        start = align == 1 and start - (time - most) or edge
      end
    end
    if not edge then
      answer[i + 2] = { err = 'CLOCK the windows given do not hold the time of this server' }
      taken[i] = nil
    else
      if not value then
        used = 0
      elseif align == 1 and moment < start + period then
        edge, stop = start, start + period
      elseif start ~= edge then
        used = 0
      end
      free[i], part[i] = rate - used, edge
      if align ~= 1 or edge == start then more[i] = stop end
      if counts_denied == 1 then
        watch = watch or {}
        watch[i] = count_denied
      end
    end
  end
end
--@ find
if align == 2 then
  edge, stop = nil, nil
  for k = 1, 4 do
    if edges[k] <= moment and moment < edges[k + 1] then edge, stop = edges[k], edges[k + 1] end
  end
elseif align == 0 then
  edge = moment - moment % period
  stop = edge + period
else
  edge, stop = moment, moment + period
end
--@ save
local _, _, align, period, rate = unpack('<BBBI6I5', argument)
for i = first, last do
  if taken[i] then
    local used = rate - free[i]
    -- A window that was opened by its first hit stays open when that is given back.
    if used == 0 and not (align == 1 and more[i]) then
      redis.call('DEL', KEYS[i])
      if verb > 1 then answer[i + 2] = false end
    else
      local value = pack('<c9i8I7I7', sub(argument, 1, 9), part[i], used, at[i] or now)
      local wait = (more[i] or part[i] + period) - now
      wait = (wait + -wait % 1000) / 1000
      if wait < shortest_expiry then wait = shortest_expiry end
      if wait ~= expiry then expiry, expiry_text = wait, string.format('%d', wait) end
      redis.call('SET', KEYS[i], value, 'PX', expiry_text)
      if verb > 1 then answer[i + 2] = value end
    end
  end
end
