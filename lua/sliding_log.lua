-- Sliding log ('g'): a sorted set by time in µs, one member for each instant at which something was charged, and one of
-- score -1 before them:
--   version, kind, period (6), last (7), gone (7)     22 bytes. last: the newest change that left no entry of its time.
--                                                     gone: entries of that time and before don't count any more.
--   at (7), cost (7), total (7)                       21 bytes. total: of all costs up to here, modulo 2^52.
-- An entry counts while at > gone and at > now - period. The argument is version, kind, period (6), rate (5).
-- What the key held is answered as: tokens that count (7), the time it is answered as (7), the newest time that counts
-- (7, 0: none), and for each charge that does not fit, but could, the time (7) of the entry that must leave for it.
--@ load
local _, _, period, rate = unpack('<BBI6I5', argument)
limit = rate
local padding = string.rep('\0', 21) -- for what is not a member of ours: the caller finds that out
-- The number of an entry by which `excess` tokens have left, and the entry: totals rise with it.
local function find(key, excess)
  local log = more[key]
  local low = redis.call('ZRANK', KEYS[key], log.first)
  local high = redis.call('ZCARD', KEYS[key]) - 1
  while low < high do
    local middle = (low + high - (low + high) % 2) / 2
    local _, _, total = unpack('<I7I7I7', redis.call('ZRANGE', KEYS[key], middle, middle)[1] .. padding)
    if (total - log.before) % 4503599627370496 >= excess then high = middle else low = middle + 1 end
  end
  return low, redis.call('ZRANGE', KEYS[key], low, low)[1]
end
find_entry = find
local function tell(key, cost, fits)
  if fits or cost > rate then return end
  local log, excess = more[key], cost - free[key]
  -- Most of those that are denied ask for as much as the one before.
  if excess ~= log.asked then
    local time = log.moment
    if excess <= log.cost then
      time = log.at
    elseif excess <= log.used and not log.cut then
      local _, entry = find(key, excess)
      time = unpack('<I7', entry .. padding)
    end
    log.asked, log.told = excess, pack('<I7', time)
  end
  answer[key + 2] = answer[key + 2] .. log.told
end
watch = watch or {}
for i = first, last do
  local ends = redis.pcall('ZRANGE', KEYS[i], '0', '1')
  local meta, oldest = ends[1], ends[2]
  local log = { meta = meta, used = 0, cost = 0, total = 0, moment = now }
  local sound = not ends.err
    and (not meta or #meta == 22 and sub(meta, 1, 2) == sub(argument, 1, 2) and (not oldest or #oldest == 21))
  if sound and meta then
    local period0, time, gone = unpack('<I6I7I7', meta, 3)
    local newest, cost, total = 0, 0, 0
    if oldest then
      log.newest = redis.call('ZRANGE', KEYS[i], '-1', '-1')[1]
      sound = #log.newest == 21
      if sound then newest, cost, total = unpack('<I7I7I7', log.newest) end
    end
    time = math.max(time, newest)
    log.newest_at, log.newest_cost, log.total = newest, cost, total
    if time > now then
      -- Another server's clock: believed for one period, then cut: what was taken counts as taken then.
      log.moment = math.min(time, now + math.max(trusted_lead, period))
      log.cut = log.moment < time
      at[i] = log.moment
    else
      time = now
    end
    if period0 ~= period then
      -- What has left by the old numbers does not come back.
      gone = math.max(gone, time - period0)
      taken[i] = 0
    end
    if log.cut then taken[i] = 0 end
    log.gone = gone
    local horizon = math.max(gone, time - period)
    if newest > horizon then
      log.first = oldest
      if unpack('<I7', oldest) <= horizon then
        log.has_expired = true
        log.first = redis.call('ZRANGEBYSCORE', KEYS[i], horizon + 1, '+inf', 'LIMIT', '0', '1')[1]
      end
      sound = sound and log.first and #log.first == 21
      if sound then
        local total0
        log.at, log.cost, total0 = unpack('<I7I7I7', log.first)
        log.before = total0 - log.cost
        log.used = (total - log.before) % 4503599627370496
        if log.cut then log.at, log.cost, log.newest_at = log.moment, log.used, log.moment end
        log.live = log.newest_at
      end
    elseif oldest then
      log.has_expired = true
    end
    sound = sound and time < exact and log.used <= 2 * most_tokens
  end
  if not sound then
    answer[i + 2] = ends.err and ends or foreign
    taken[i] = nil
  else
    free[i], more[i], watch[i] = rate - log.used, log, tell
    answer[i + 2] = pack('<I7I7I7', log.used, log.moment, log.live or 0)
  end
end
--@ save
local _, _, period, rate = unpack('<BBI6I5', argument)
for i = first, last do
  local took = taken[i]
  if took then
    local log = more[i]
    local meta = pack('<BBI6I7I7', 1, kind, period, log.last or 0, log.gone or 0)
    if rate == free[i] then
      redis.call('DEL', KEYS[i])
    else
      if log.cut then
        redis.call('DEL', KEYS[i])
        took = rate - free[i]
        redis.call('ZADD', KEYS[i], '-1', meta, log.moment, pack('<I7I7I7', log.moment, took, took))
      else
        if log.has_expired then
          local expired = (log.first and redis.call('ZRANK', KEYS[i], log.first) or redis.call('ZCARD', KEYS[i])) - 1
          expired = math.min(expired, trims)
          trims = trims - expired
          if expired > 0 then redis.call('ZREMRANGEBYRANK', KEYS[i], '1', expired) end
        end
        if meta ~= log.meta then
          if log.meta then redis.call('ZREM', KEYS[i], log.meta) end
          redis.call('ZADD', KEYS[i], '-1', meta)
        end
        if took > 0 then
          local cost, total = took, (log.total + took) % 4503599627370496
          if log.newest_at == log.moment then
            -- One member an instant.
            cost = cost + log.newest_cost
            redis.call('ZREM', KEYS[i], log.newest)
          end
          redis.call('ZADD', KEYS[i], log.moment, pack('<I7I7I7', log.moment, cost, total))
        end
      end
      local newest = (took > 0 or log.cut) and log.moment or log.live
      local wait = newest + period - now
      wait = (wait + -wait % 1000) / 1000
      if wait < shortest_expiry then wait = shortest_expiry end
      redis.call('PEXPIRE', KEYS[i], string.format('%d', wait))
      if verb > 1 then answer[i + 2] = pack('<I7I7I7', rate - free[i], log.moment, newest) end
    end
    if verb > 1 and rate == free[i] then answer[i + 2] = pack('<I7I7I7', 0, log.moment, 0) end
  end
end
