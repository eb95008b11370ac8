-- Judges requests in order, each all or nothing, in one atomic step; or carries out a verb on one key.
--
-- KEYS: the keys of all requests, each once, those of one limit in a row. ARGV[1], numbers little-endian:
--   verb (1 byte), number of limits (2 bytes), for each limit the number of its keys (2 bytes), then
--   for verbs check (0) and peek (1, which changes nothing) the charges of the requests in order, for each:
--     its key (2 bytes, from 1), 1 byte: enforcement (0 enforce, 1 shadow, 2 quota) + 4 at the request's last charge,
--     cost (1 byte; 255: 7 bytes follow)
--   for verb 7, of one token bucket: cost (1 byte), an enforced charge of a request of its own for each key;
--   verb 8 is another form of the same for one key: see one_bucket.lua;
--   for the other verbs, with one key: see verb.lua.
-- ARGV[2 …]: the limits (see the algorithms). Each begins with the version of the layout, 1, and the kind.
--
-- Answers the time in µs, for each request '1' (admitted), '0', or 'x' (not judged: a key cannot be used), and what each
-- key held before this step (after it, for verbs); for a key that cannot be used an error.
--
-- Everything is read and checked before the first write: nothing after that can fail.
--
-- All numbers are whole and below 2^53, where doubles are exact, and so are a % b and (a - a % b) / b. Bounds: a token's
-- parts p and periods <= 366 days of µs < 2^45, a refill c < 2^40, times < 2^53, tokens < 2^51.
-- The commonest kinds come first and nothing here is a function that needn't be: each costs some 100 ns a call.
local redis, byte, sub, pack, unpack = redis, string.byte, string.sub, struct.pack, struct.unpack
local exact = 9007199254740992     -- 2^53
local longest = 3162240000000000   -- 36 600 days in µs: no wait is longer
local most_tokens = 1000000000000000
local most_kept = 900000           -- µs by which a bucket's key may outlive its state; 0.1 s more until it expires

--@ one_bucket judge

-- floor(a * b / m) and the remainder, for 0 <= a < m < 2^45 and b < 2^50: a long division, seven bits of b a step.
local function multiply_divide(a, b, m)
  local product = a * b
  if product < exact then
    local remainder = product % m
    return (product - remainder) / m, remainder
  end
  local quotient, remainder, place = 0, 0, 4398046511104 -- 2^42
  while place >= 1 do
    local digit = (b - b % place) / place
    b = b % place
    local sum = remainder * 128 + a * digit
    remainder = sum % m
    quotient = quotient * 128 + (sum - remainder) / m
    place = place / 128
  end
  return quotient, remainder
end

local verb, groups = byte(requests, 1, 2)
groups = groups + byte(requests, 3) * 256
local answer = { now, '1' }
local expiry, expiry_text -- the last one written, in ms; many keys have the same

if verb == 7 then
  --@ token_bucket each_once
end

local foreign = { err = 'FOREIGN a value that is not a state of this limit' }
local trims = 256 -- members of sorted sets that this call may still remove because their time is over
-- By key. free: tokens that fit now, absent when the key cannot be used. at: the time that the state is answered as,
-- absent: now. taken: tokens taken by this call; 0 when the state is to be written all the same. kept: until when the key
-- exists without a new expiry, absent: unknown. More: the algorithms.
local free, at, taken, part, more, kept = {}, {}, {}, {}, {}, {}
-- Who is told of each charge, and whether it was taken; by key, absent for most.
local watch
local limit, find_entry -- of the key that a verb is about

if verb == 5 then -- reset
  redis.call('DEL', KEYS[1])
  answer[3] = false
  return answer
end

local first, last, position = 1, 0, 4
for group = 2, groups + 1 do
  local low, high = byte(requests, position, position + 1)
  position, first, last = position + 2, last + 1, last + low + high * 256
  local argument = ARGV[group]
  local kind = byte(argument, 2)
  if kind == 116 or kind == 108 then -- 't', 'l'
    --@ token_bucket load
  elseif kind == 102 then -- 'f'
    --@ fixed_window load
  elseif kind == 115 then -- 's'
    --@ sliding_window load
  elseif kind == 103 then -- 'g'
    --@ sliding_log load
  else -- 'c'
    --@ concurrency load
  end
end

local length, verdicts, judged = #requests, {}, 0
if verb > 1 then
  --@ verb apply
else
  local keys, costs, fitting = {}, {}, {}
  while position <= length do
    local low, high, kind, cost = byte(requests, position, position + 3)
    local key = low + high * 256
    position = position + 4
    if cost == 255 then cost, position = unpack('<I7', requests, position) end
    local verdict = '0'
    if kind == 4 then
      -- One enforced charge, as most requests have.
      local left = free[key]
      if not left then
        verdict = 'x'
      elseif cost == 0 or cost <= left then
        verdict = '1'
        if cost > 0 then
          free[key], taken[key] = left - cost, (taken[key] or 0) + cost
          if watch and watch[key] then watch[key](key, cost, true) end
        end
      elseif watch and watch[key] then
        watch[key](key, cost, false)
      end
    else
      local size, usable, refused, quotas, quota_fits = 0, true, false, false, false
      while true do
        size = size + 1
        keys[size], costs[size] = key, cost
        local left = free[key]
        local fits = cost == 0 or left and cost <= left
        fitting[size] = fits
        usable = usable and left
        if kind % 4 == 0 then
          refused = refused or not fits
        elseif kind % 4 == 2 then
          quotas, quota_fits = true, quota_fits or fits
        end
        if kind >= 4 then break end
        low, high, kind, cost = byte(requests, position, position + 3)
        key = low + high * 256
        position = position + 4
        if cost == 255 then cost, position = unpack('<I7', requests, position) end
      end
      local admitted = not refused and (quota_fits or not quotas)
      verdict = not usable and 'x' or admitted and '1' or '0'
      for i = 1, usable and size or 0 do
        key, cost = keys[i], costs[i]
        if not fitting[i] then
          if watch and watch[key] then watch[key](key, cost, false) end
        elseif admitted and cost > 0 then
          free[key], taken[key] = free[key] - cost, (taken[key] or 0) + cost
          if watch and watch[key] then watch[key](key, cost, true) end
        end
      end
    end
    judged = judged + 1
    verdicts[judged] = verdict
  end
  answer[2] = judged == 1 and verdicts[1] or table.concat(verdicts)
  if verb == 1 then return answer end
end

last, position = 0, 4
for group = 2, groups + 1 do
  local low, high = byte(requests, position, position + 1)
  position, first, last = position + 2, last + 1, last + low + high * 256
  local argument = ARGV[group]
  local kind = byte(argument, 2)
  if kind == 116 or kind == 108 then
    --@ token_bucket save
  elseif kind == 102 then
    --@ fixed_window save
  elseif kind == 115 then
    --@ sliding_window save
  elseif kind == 103 then
    --@ sliding_log save
  else
    --@ concurrency save
  end
end
return answer
