-- Exact arithmetic in doubles: every intermediate is a whole number below 2^53, where floor(a / b) and ceil(a / b) are
-- exact too. Bounds: a token's parts p <= 366 days of µs < 2^45, a refill c < 2^40, times < 2^53, tokens < 2^51.
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local pack, unpack_struct, sub = struct.pack, struct.unpack, string.sub
local exact = 9007199254740992     -- 2^53
local longest = 3162240000000000   -- 36 600 days in µs: no wait is longer
local most_tokens = 1000000000000000

-- floor(a * b / m) and the remainder, for 0 <= a < m < 2^45 and b < 2^49: a long division, seven bits of b a step.
local function multiply_divide(a, b, m)
  local product = a * b
  if product < exact then
    local quotient = floor(product / m)
    return quotient, product - quotient * m
  end
  local quotient, remainder, place = 0, 0, 4398046511104 -- 2^42
  while place >= 1 do
    local digit = floor(b / place)
    b = b - digit * place
    local sum = remainder * 128 + a * digit
    local part = floor(sum / m)
    quotient = quotient * 128 + part
    remainder = sum - part * m
    place = place / 128
  end
  return quotient, remainder
end

-- Is n a whole number from least to most? NaN is not.
local function whole(n, least, most)
  return n >= least and n <= most and n == floor(n)
end

local function foreign(key)
  return { err = 'FOREIGN key ' .. key .. ' holds a value that is not a state of this limit' }
end
