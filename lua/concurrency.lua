-- Concurrency ('c'): a sorted set of leases by the time in µs at which they end, and one member of score -1 before them:
--   version, kind, ids (7), held (7), at (7)     23 bytes. ids: the last lease's. held: cost of all members, of those
--                                                that are over too. at: the last change.
--   id (7), cost (7)                             14 bytes. Ids rise; a new one is at least the time, so that none comes
--                                                twice even when the key has been away.
-- A lease is held before its end. The argument is version, kind, ttl (6), rate (5).
-- What the key held is answered as: tokens held (7), the time it is answered as (7), ids (7), the last end (7, 0: none),
-- and for each charge that does not fit, but could, the end (7) of the lease that must end for it.
--@ load
local _, _, ttl, rate = unpack('<BBI6I5', argument)
limit = rate
local padding = string.rep('\0', 14) -- for what is not a member of ours: the caller finds that out
local function tell(key, cost, fits)
  local leases = more[key]
  if fits then
    leases.new[#leases.new + 1], leases.asked = cost, nil
  elseif cost <= rate and cost - free[key] == leases.asked then
    answer[key + 2] = answer[key + 2] .. leases.told
  elseif cost <= rate then
    local missing, mine, from, size, time = cost - free[key], leases.moment + ttl, 0, 2, nil
    leases.asked = missing
    local own = 0
    for k = 1, #leases.new do own = own + leases.new[k] end
    while not time do
      local some = redis.call('ZRANGEBYSCORE', KEYS[key], leases.moment + leases.lead + 1, '+inf', 'WITHSCORES',
        'LIMIT', from, size)
      for k = 1, #some, 2 do
        local ends = some[k + 1] - leases.lead
        if ends >= mine and own > 0 then
          missing, own = missing - own, 0
          if missing <= 0 then time = mine break end
        end
        local _, weight = unpack('<I7I7', some[k] .. padding)
        missing = missing - weight
        if missing <= 0 then time = ends break end
      end
      if #some < 2 * size then time = time or mine end
      from, size = from + size, 64
    end
    leases.told = pack('<I7', time)
    answer[key + 2] = answer[key + 2] .. leases.told
  end
end
watch = watch or {}
for i = first, last do
  local ends = redis.pcall('ZRANGE', KEYS[i], '0', '0')
  local meta = ends[1]
  local leases = { meta = meta, moment = now, lead = 0, new = {}, ids = 0, held = 0, over = 0, all = 0 }
  local sound = not ends.err and (not meta or #meta == 23 and sub(meta, 1, 2) == sub(argument, 1, 2))
  local newest = 0
  if sound and meta then
    local held, time
    leases.ids, held, time = unpack('<I7I7I7', meta, 3)
    sound = time < exact and leases.ids < exact
    if time > now then
      -- Another server's clock: believed for one ttl, then cut: all ends come nearer by as much.
      leases.moment = math.min(time, now + math.max(trusted_lead, ttl))
      leases.lead = time - leases.moment
      at[i] = leases.moment
      if leases.lead > 0 then taken[i] = 0 end
    end
    local over = redis.call('ZRANGEBYSCORE', KEYS[i], '0', leases.moment + leases.lead)
    for k = 1, #over do
      sound = sound and #over[k] == 14
      local cost = 0
      if sound then _, cost = unpack('<I7I7', over[k]) end
      held = held - cost
      if k <= trims then leases.over = k else leases.all = leases.all + cost end
    end
    local ending = redis.call('ZRANGE', KEYS[i], '-1', '-1', 'WITHSCORES')
    newest = ending[2] - leases.lead
    if newest <= leases.moment then newest = 0 end
    leases.held = held
    sound = sound and held >= 0 and held <= 2 * most_tokens and newest < exact and (newest > 0 or held == 0)
    leases.all = leases.all + held
    trims = trims - leases.over
  end
  leases.newest = newest
  if not sound then
    answer[i + 2] = ends.err and ends or foreign
    taken[i] = nil
  else
    free[i], more[i], watch[i] = rate - leases.held, leases, tell
    answer[i + 2] = pack('<I7I7I7I7', leases.held, leases.moment, leases.ids, newest)
  end
end
--@ save
local _, _, ttl, rate = unpack('<BBI6I5', argument)
for i = first, last do
  if taken[i] then
    local leases, held = more[i], rate - free[i]
    if leases.lead > 0 then
      local all = redis.call('ZRANGE', KEYS[i], '1', '-1', 'WITHSCORES')
      for k = 1, #all, 2 do redis.call('ZADD', KEYS[i], all[k + 1] - leases.lead, all[k]) end
    end
    if leases.over > 0 then redis.call('ZREMRANGEBYRANK', KEYS[i], '1', leases.over) end
    if leases.meta then redis.call('ZREM', KEYS[i], leases.meta) end
    for k = 1, #leases.new do
      leases.ids = math.max(leases.ids + 1, leases.moment)
      redis.call('ZADD', KEYS[i], leases.moment + ttl, pack('<I7I7', leases.ids, leases.new[k]))
      leases.all = leases.all + leases.new[k]
    end
    redis.call('ZADD', KEYS[i], '-1', pack('<BBI7I7I7', 1, kind, leases.ids, leases.all, leases.moment))
    -- With nothing held it stays for an instant, so that no other lease gets this one's id.
    local newest = held > 0 and redis.call('ZRANGE', KEYS[i], '-1', '-1', 'WITHSCORES')[2] + 0 or 0
    local wait = newest - now
    wait = (wait + -wait % 1000) / 1000
    if wait < shortest_expiry then wait = shortest_expiry end
    redis.call('PEXPIRE', KEYS[i], string.format('%d', wait))
    if verb > 1 then answer[i + 2] = pack('<I7I7I7I7', held, leases.moment, leases.ids, newest) end
  end
end
