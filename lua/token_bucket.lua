-- Token bucket. With c/p = rate/period in lowest terms, tokens per µs, a state is `tokens` whole tokens and `part` 1/p
-- tokens at `at`. Stored with the numbers it was made with, so that a node with others can convert it:
--   version, 't', burst, c, p | tokens, part, at          (two bytes and six doubles, little-endian)
-- The argument is the first half.
local bucket_head, bucket_size = 26, 50

-- µs until a bucket is full.
local function time_to_full(burst, c, p, tokens, part)
  local missing = burst - tokens
  if missing <= 0 then return 0 end
  if c == 0 then return longest end
  local product = missing * p
  if product < exact then return min(longest, ceil((product - part) / c)) end
  local rounds = floor(missing / c)
  local ticks, remainder = multiply_divide(missing - rounds * c, p, c)
  return min(longest, rounds * p + ticks + ceil((remainder - part) / c))
end

local function load_bucket(key, value, argument)
  local version, _, burst, c, p = unpack_struct('<BBddd', argument)
  local bucket = { key = key, head = argument, burst = burst, c = c, p = p, tokens = burst, part = 0, at = now }
  if not value then return bucket end
  if #value ~= bucket_size or sub(value, 1, 2) ~= sub(argument, 1, 2) then return foreign(key) end
  local same = sub(value, 1, bucket_head) == argument
  local burst0, c0, p0, tokens, part, at = burst, c, p, 0, 0, 0
  if same then
    tokens, part, at = unpack_struct('<ddd', value, bucket_head + 1)
  else
    _, _, burst0, c0, p0, tokens, part, at = unpack_struct('<BBdddddd', value)
    if not (whole(burst0, 1, most_tokens) and whole(c0, 0, 1000000000000) and whole(p0, 1, 31622400000000)) then
      return foreign(key)
    end
  end
  if not (whole(tokens, -most_tokens, burst0) and whole(part, 0, p0 - 1) and whole(at, 0, exact - 1)) then
    return foreign(key)
  end

  if at > now then
    -- Another server's clock. Believed as far as the state's own use can last, so that nobody is shut out for longer.
    -- A cut is written even when nothing is taken: else it would move along with each call.
    bucket.at = min(at, now + max(trusted_lead, time_to_full(burst0, c0, p0, tokens, part)))
    bucket.changed = bucket.at < at
  elseif tokens < burst0 then
    local elapsed = now - at
    local refill = part + elapsed * c0
    if refill < exact then
      local gained = floor(refill / p0)
      tokens, part = tokens + gained, refill - gained * p0
    else
      -- rounds * c0 is inexact only where it is far above any burst.
      local rounds = floor(elapsed / p0)
      local gained, rest = multiply_divide(elapsed - rounds * p0, c0, p0)
      part = part + rest
      if part >= p0 then gained, part = gained + 1, part - p0 end
      tokens = tokens + rounds * c0 + gained
    end
    if tokens >= burst0 then tokens, part = burst0, 0 end
  end

  if not same then
    -- New numbers: tokens stay, cut to the new burst; a full bucket stays full.
    bucket.changed = true
    if tokens == burst0 then
      tokens, part = burst, 0
    else
      part = multiply_divide(part, p, p0)
      if tokens >= burst then tokens, part = burst, 0 end
    end
  end
  bucket.tokens, bucket.part = tokens, part
  return bucket
end

local function bucket_fits(bucket, cost)
  return cost <= bucket.tokens
end

local function take_bucket(bucket, cost)
  bucket.tokens = bucket.tokens - cost
  bucket.changed = true
end

local function save_bucket(bucket)
  local wait = time_to_full(bucket.burst, bucket.c, bucket.p, bucket.tokens, bucket.part)
  if wait == 0 then
    redis.call('DEL', bucket.key)
    return
  end
  local expiry = ceil((min(longest, bucket.at - now + wait)) / 1000)
  redis.call('SET', bucket.key, bucket.head .. pack('<ddd', bucket.tokens, bucket.part, bucket.at), 'PX',
    max(expiry, shortest_expiry))
end
