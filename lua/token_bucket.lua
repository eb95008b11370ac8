-- Token bucket ('t') and leaky bucket ('l', the same with burst = queue + 1). With c/p = rate/period in lowest terms,
-- tokens per µs, a state is `missing` whole tokens less `part` 1/p tokens (0 <= part < p) from full at `at`. It is stored
-- with the numbers it was made with, so that a node with others can convert it:
--   version, kind, burst (7 bytes), c (5), p (6) | missing (7), part (6), at (7), kept (7)     47 bytes
-- kept: a time until which the key surely exists: 0.7 to 0.8 s after it was full when that was written. A change that is
-- over by then overwrites only the middle, which keeps the key's expiry and costs Redis a third of a SET with one (strings
-- of 45 bytes or more are changed in place). Where the state is full more than most_kept before, the key is written whole:
-- its state was cut, or a foreign `kept` would leave a key without an expiry as it is.
-- The argument is the first half. For a leaky bucket, whose conversion rounds, c and p are instead rate and period as they
-- were given, and the argument goes on with c (5) and p (6). A leaky bucket whose backlog is more than burst + 10^15 tokens deep, as new numbers
-- can make it, stores µs as `missing` and 2^48 - 1 as `part`.
--@ load
local _, _, burst, c, p = unpack('<BBI7I5I6', argument)
local head = argument
if kind == 108 then
  head = sub(argument, 1, 20)
  c, p = unpack('<I5I6', argument, 21)
end
limit = burst
for i = first, last do
  local value = redis.pcall('GET', KEYS[i])
  answer[i + 2] = value
  if not value then
    free[i] = burst
  else
    local sound = #value == 47 -- an error is an empty table
    local same = sound and sub(value, 1, 20) == head
    local burst0, c0, p0, missing, rest, time = burst, c, p
    sound = same or sound and sub(value, 1, 2) == sub(argument, 1, 2)
    if sound then
      if same then
        missing, rest, time, kept[i] = unpack('<I7I6I7I7', value, 21)
      else
        _, _, burst0, c0, p0, missing, rest, time = unpack('<BBI7I5I6I7I6I7', value)
        sound = burst0 > 0 and burst0 <= most_tokens and c0 <= 1000000000000 and p0 > 0 and p0 <= 31622400000000
          and (c0 > 0 or kind == 116)
        if sound then
          local a, b = p0, c0
          while b > 0 do a, b = b, a % b end
          if kind == 108 then c0, p0 = c0 / a, p0 / a else sound = a == 1 end
        end
      end
      sound = sound and time < exact and (rest < p0 and missing <= burst0 + most_tokens and (missing > 0 or rest == 0)
        or rest == 281474976710655 and kind == 108 and c0 > 0 and missing <= longest)
    end
    if not sound then
      answer[i + 2] = type(value) == 'table' and value or foreign
    else
      local backlog -- µs, when it is too deep for tokens
      if rest == 281474976710655 then backlog, missing, rest = missing, burst0 + 2 * most_tokens, 0 end
      if time > now then
        -- Another server's clock. Believed as far as the state's own use can last, so that nobody is shut out for
        -- longer. A cut is written even when nothing is taken: else it would move along with each call.
        --@ token_bucket time_to_full
        at[i] = math.min(time, now + math.max(trusted_lead, wait))
        if at[i] < time then taken[i] = 0 end
      elseif backlog then
        backlog = math.max(0, backlog - (now - time))
      elseif missing > 0 then
        local elapsed = now - time
        local refill = rest + elapsed * c0
        if refill < exact then
          rest = refill % p0
          missing = missing - (refill - rest) / p0
        else
          -- rounds * c0 is inexact only where it is far above any burst.
          local into = elapsed % p0
          local gained, more_parts = multiply_divide(into, c0, p0)
          rest = rest + more_parts
          if rest >= p0 then gained, rest = gained + 1, rest - p0 end
          missing = missing - (elapsed - into) / p0 * c0 - gained
        end
        if missing <= 0 then missing, rest = 0, 0 end
      end
      if not same then
        taken[i] = 0
        if kind == 108 then
          -- Slots given away keep their time: the backlog in µs, rounded up, stays.
          if not backlog then
            --@ token_bucket time_to_full
            backlog = wait
          end
        elseif missing > 0 then
          -- Tokens stay, cut to the new burst; a full bucket stays full.
          missing, rest = missing + burst - burst0, multiply_divide(rest, p, p0)
          if missing <= 0 then missing, rest = 0, 0 end
        end
      end
      if backlog then
        local into = backlog % p
        local tokens, parts = multiply_divide(into, c, p)
        tokens = tokens + (backlog - into) / p * c
        missing, rest = tokens, 0
        if parts > 0 then missing, rest = tokens + 1, p - parts end
        if missing > burst + most_tokens then
          missing, rest, more[i] = burst + 2 * most_tokens, 0, backlog
        end
      end
      free[i], part[i] = burst - missing, rest
    end
  end
end
--@ time_to_full
local wait = backlog or 0
if not backlog and missing > 0 then
  if c0 == 0 then
    wait = longest
  else
    local parts = missing * p0
    if parts < exact then
      wait = parts - rest
      wait = (wait - wait % c0) / c0 + (wait % c0 > 0 and 1 or 0)
    else
      local tokens = missing % c0
      local ticks, left = multiply_divide(tokens, p0, c0)
      wait = (missing - tokens) / c0 * p0 + ticks
      left = left - rest
      wait = wait + (left - left % c0) / c0 + (left % c0 > 0 and 1 or 0)
    end
    if wait > longest then wait = longest end
  end
end
--@ save
local _, _, burst0, c0, p0 = unpack('<BBI7I5I6', argument)
if kind == 108 then c0, p0 = unpack('<I5I6', argument, 21) end
for i = first, last do
  if taken[i] then
    local missing, rest, backlog = burst0 - free[i], part[i] or 0, more[i]
    --@ token_bucket time_to_full
    if wait == 0 then
      redis.call('DEL', KEYS[i])
      if verb > 1 then answer[i + 2] = false end
    else
      local time = at[i] or now
      if backlog then missing, rest = backlog, 281474976710655 end
      local stop, expected = time + wait, kept[i] or 0
      if stop > expected or expected > stop + most_kept or verb > 1
        or redis.call('SETRANGE', KEYS[i], '20', pack('<I7I6I7', missing, rest, time)) ~= 47 then
        wait = stop - now
        --@ token_bucket lifetime
        local value = pack('<c20I7I6I7I7', argument, missing, rest, time, exists)
        redis.call('SET', KEYS[i], value, 'PX', expiry_text)
        if verb > 1 then answer[i + 2] = value end
      end
    end
  end
end
--@ lifetime
-- Of a key, in ms: longer than needed, so that what follows soon need not set it again, and one of few numbers.
if wait > longest then wait = longest end
wait = (wait + -wait % 100000) / 1000 + 800
if wait > longest / 1000 then wait = longest / 1000 end
local exists = now + (wait - 100) * 1000
if wait < shortest_expiry then wait = shortest_expiry end
if wait ~= expiry then expiry, expiry_text = wait, string.format('%d', wait) end
--@ each_once
-- The same for verb 7, in fewer steps. A state that needs more than these leaves the whole call to the general way.
local count, cost = byte(requests, 4) + byte(requests, 5) * 256, byte(requests, 6)
local argument = ARGV[2]
local _, _, burst, c0, p0 = unpack('<BBI7I5I6', argument)
local written, expiries, fresh, fresh_expiry, backlog = {}, {}, nil, nil, nil
local is_plain, verdict, most_lead = true, '1', most_kept * c0
for i = 1, count do
  local value = redis.pcall('GET', KEYS[i])
  answer[i + 2] = value
  local missing, rest, kept = cost, 0, 0
  if value then
    is_plain = #value == 47 and sub(value, 1, 20) == argument
    if not is_plain then break end
    local time
    missing, rest, time, kept = unpack('<I7I6I7I7', value, 21)
    local elapsed = now - time
    local refill = rest + elapsed * c0
    is_plain = elapsed >= 0 and refill < exact and rest < p0 and missing <= burst + most_tokens and (missing > 0 or rest == 0)
    if not is_plain then break end
    rest = refill % p0
    missing = missing - (refill - rest) / p0
    if missing <= 0 then missing, rest = 0, 0 end
    missing = missing + cost
  end
  local parts = missing * p0
  local lead = (kept - now) * c0 - parts + rest -- by which the key outlives the state
  if missing > burst then
    verdict = '0'
  elseif parts < exact and lead >= 0 and lead <= most_lead then
    written[i] = pack('<I7I6I7', missing, rest, now)
  elseif not value and fresh then
    written[i], expiries[i] = fresh, fresh_expiry
  else
    --@ token_bucket time_to_full
    --@ token_bucket lifetime
    written[i], expiries[i] = pack('<c20I7I6I7I7', argument, missing, rest, now, exists), expiry_text
    if not value then fresh, fresh_expiry = written[i], expiry_text end
  end
end
if is_plain then
  if count > 1 then
    local verdicts = string.rep('1', count)
    if verdict == '0' then
      verdicts = {}
      for i = 1, count do verdicts[i] = written[i] and '1' or '0' end
      verdicts = table.concat(verdicts)
    end
    verdict = verdicts
  end
  answer[2] = verdict
  for i = 1, count do
    local value, text = written[i], expiries[i]
    if value then
      if not text and redis.call('SETRANGE', KEYS[i], '20', value) ~= 47 then
        local missing, rest = unpack('<I7I6', value)
        --@ token_bucket time_to_full
        --@ token_bucket lifetime
        value, text = argument .. value .. pack('<I7', 0), expiry_text
      end
      if text then redis.call('SET', KEYS[i], value, 'PX', text) end
    end
  end
  return answer
end
local charges = {}
for i = 1, count do charges[i] = pack('<I2BB', i, 4, cost) end
requests, verb = pack('<BI2I2', 0, 1, count) .. table.concat(charges), 0
