-- Fixed window. A state is `count` tokens taken in the window that begins at `start`, last changed at `at`:
--   version, 'f', align, shape | start, count, at         (three bytes and four doubles, little-endian)
-- align: 0 epoch, 1 first_hit, 2 calendar. shape: the period in µs; of a calendar, a number that stands for it. Another
-- align or shape starts anew. The argument is the first half, then rate and whether denied charges count, then, for a
-- calendar, the five edges of four windows in a row, of which the second is the present one by the caller's clock.
local window_head, window_size = 11, 35

-- Start and end of the window that holds `at`; nothing when a calendar's edges do not reach there.
local function window_at(window, at)
  if window.align == 2 then
    for i = 1, 4 do
      if window[i] <= at and at < window[i + 1] then return window[i], window[i + 1] end
    end
    return nil
  end
  if window.align == 0 then
    local start = at - at % window.period
    return start, start + window.period
  end
  return at, at + window.period
end

local function load_window(key, value, argument)
  local _, _, align, period, rate, counts_denied = unpack_struct('<BBBddB', argument)
  local window = {
    key = key, head = sub(argument, 1, window_head), align = align, period = period, rate = rate,
    counts_denied = counts_denied == 1, used = 0, at = now,
  }
  if align == 2 then
    window[1], window[2], window[3], window[4], window[5] = unpack_struct('<ddddd', argument, 21)
  end
  local start, count, at
  if value then
    if #value ~= window_size or sub(value, 1, 2) ~= sub(argument, 1, 2) then return foreign(key) end
    start, count, at = unpack_struct('<ddd', value, window_head + 1)
    if not (whole(at, 0, exact - 1) and whole(start, -longest, at) and whole(count, 0, 2 * most_tokens)) then
      return foreign(key)
    end
    if sub(value, 1, window_head) ~= window.head then
      window.changed, value = true, false
    end
  end
  local first, last = window_at(window, now)
  local cut = false
  if value and at > now then
    -- Another server's clock: believed for one window, then cut, and what was taken moves along.
    local most = now + max(trusted_lead, first and last - first or 0)
    if at > most then
      cut = true
      start, at = start - (at - most), most
      if align ~= 1 then start = window_at(window, at) end
    end
    window.at = at
    first, last = window_at(window, at)
  end
  if not first then
    return { err = 'CLOCK the windows given for key ' .. key .. ' do not hold the time of this server' }
  end
  if value then
    if align == 1 and window.at < start + period then
      first, last, window.used = start, start + period, count
    elseif start == first then
      window.used = count
    end
  end
  window.start, window.stop = first, last
  -- Written even when nothing is taken: else the cut would move along with each call.
  if cut then window.changed, window.counted = true, window.used > 0 end
  return window
end

local function window_fits(window, cost)
  return window.used + cost <= window.rate
end

local function take_window(window, cost)
  window.used = window.used + cost
  window.changed, window.counted = true, true
end

local function miss_window(window, cost)
  if not window.counts_denied then return end
  cost = min(cost, window.rate + most_tokens - window.used)
  if cost > 0 then take_window(window, cost) end
end

local function save_window(window)
  if not window.counted then
    redis.call('DEL', window.key)
    return
  end
  redis.call('SET', window.key, window.head .. pack('<ddd', window.start, window.used, window.at), 'PX',
    max(ceil((window.stop - now) / 1000), shortest_expiry))
end
