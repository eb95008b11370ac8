-- Token bucket ('t') and leaky bucket ('l', the same with burst = queue + 1). With c/p = rate/period in lowest terms,
-- tokens per µs, a state is `missing` whole tokens less `part` 1/p tokens (0 <= part < p) from full at `at`. It is stored
-- with the numbers it was made with, so that a node with others can convert it:
--   version, kind, burst (7 bytes), c (5), p (6) | missing (7), part (6), at (7)     40 bytes
-- The argument is the first half. For a leaky bucket, whose conversion rounds, c and p are instead rate and period as they
-- were given, and the argument goes on with c (5) and p (6). A leaky bucket whose backlog is more than burst + 10^15 tokens deep, as new numbers
-- can make it, stores µs as `missing` and 2^48 - 1 as `part`. Redis keeps strings of up to 44 bytes in one piece.
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
    local sound = #value == 40 -- an error is an empty table
    local same = sound and sub(value, 1, 20) == head
    local burst0, c0, p0, missing, rest, time = burst, c, p
    sound = same or sound and sub(value, 1, 2) == sub(argument, 1, 2)
    if sound then
      if same then
        missing, rest, time = unpack('<I7I6I7', value, 21)
      else
        _, _, burst0, c0, p0, missing, rest, time = unpack('<BBI7I5I6I7I6I7', value)
        sound = burst0 > 0 and burst0 <= most_tokens and c0 <= 1000000000000 and p0 > 0 and p0 <= 31622400000000
        if kind == 108 and sound then
          local a, b = p0, c0
          while b > 0 do a, b = b, a % b end
          c0, p0 = c0 / a, p0 / a
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
      local value = pack('<c20I7I6I7', argument, missing, rest, time)
      wait = time - now + wait
      if wait > longest then wait = longest end
      wait = (wait + -wait % 1000) / 1000
      if wait < shortest_expiry then wait = shortest_expiry end
      if wait ~= expiry then expiry, expiry_text = wait, string.format('%d', wait) end
      redis.call('SET', KEYS[i], value, 'PX', expiry_text)
      if verb > 1 then answer[i + 2] = value end
    end
  end
end
