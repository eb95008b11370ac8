-- Verb 8: one enforced charge on one token bucket, as most calls to a cluster are, in the fewest steps. ARGV[1] is the verb,
-- the cost (1 byte) and the limit's argument. A state that needs more than these goes the general way (see token_bucket.lua).
--@ judge
local requests = ARGV[1]
if byte(requests) == 8 then
  local value = redis.pcall('GET', KEYS[1])
  local cost, _, _, burst, c0, p0 = unpack('<BBBI7I5I6', requests, 2)
  local missing, rest, kept, is_plain = cost, 0, 0, c0 > 0
  if value then
    is_plain = is_plain and #value == 47 and sub(value, 1, 20) == sub(requests, 3)
    if is_plain then
      local time
      missing, rest, time, kept = unpack('<I7I6I7I7', value, 21)
      local elapsed = now - time
      local refill = rest + elapsed * c0
      is_plain = elapsed >= 0 and refill < exact and rest < p0 and missing <= burst + most_tokens and (missing > 0 or rest == 0)
      rest = refill % p0
      missing = missing - (refill - rest) / p0
      if missing <= 0 then missing, rest = 0, 0 end
      missing = missing + cost
    end
  end
  local parts = missing * p0
  if is_plain and parts < exact then
    if missing > burst then return { now, '0', value } end
    parts = parts - rest
    local lead = (kept - now) * c0 - parts -- by which the key outlives the state
    if lead < 0 or lead > most_kept * c0
      or redis.call('SETRANGE', KEYS[1], '20', pack('<I7I6I7', missing, rest, now)) ~= 47 then
      local wait, expiry, expiry_text = (parts + -parts % c0) / c0, nil, nil
      --@ token_bucket lifetime
      redis.call('SET', KEYS[1], pack('<c20I7I6I7I7', sub(requests, 3), missing, rest, now, exists), 'PX', expiry_text)
    end
    return { now, '1', value }
  end
  ARGV[2] = sub(requests, 3)
  requests = pack('<BI2I2I2BB', 0, 1, 1, 1, 4, cost)
end
