-- Judges requests in order, each all or nothing, in one atomic step.
-- KEYS: the keys of all requests, each once. ARGV: for each key its limit (see the algorithms), then the requests: for
-- each the number of its charges (2 bytes), and for each charge the number of its key (2 bytes, from 1), its
-- enforcement (1 byte: 0 enforce, 1 shadow, 2 quota) and its cost (a double).
-- Answers the time in µs, a '1' (admitted), '0' or 'x' for each request, and the value of each key before this step. A
-- key that cannot be used has an error there; requests that charge it are not judged ('x') and take nothing.
local count = #KEYS
local answer, states, is_bucket = { now, '' }, {}, {}

-- Everything is read and checked before the first write: nothing after that can fail.
for i = 1, count do
  local value = redis.pcall('GET', KEYS[i])
  is_bucket[i] = sub(ARGV[i], 2, 2) == 't'
  local load, state = is_bucket[i] and load_bucket or load_window
  if type(value) == 'table' then
    state = { err = value.err .. ' (key ' .. KEYS[i] .. ')' }
  else
    state = load(KEYS[i], value, ARGV[i])
  end
  answer[i + 2] = state.err and state or value
  states[i] = state
end

local requests, position, verdicts = ARGV[count + 1], 1, {}
while position <= #requests do
  local charges, unusable, refused, quotas, quota_fits = {}, false, false, false, false
  local size
  size, position = unpack_struct('<H', requests, position)
  for i = 1, size do
    local index, enforcement, cost
    index, enforcement, cost, position = unpack_struct('<HBd', requests, position)
    local state = states[index]
    local fits = cost == 0 or not state.err and (is_bucket[index] and bucket_fits or window_fits)(state, cost)
    charges[i] = { index, cost, fits }
    if state.err then
      unusable = true
    elseif enforcement == 0 then
      refused = refused or not fits
    elseif enforcement == 2 then
      quotas, quota_fits = true, quota_fits or fits
    end
  end
  local admitted = not refused and (quota_fits or not quotas)
  for i = 1, unusable and 0 or size do
    local index, cost, fits = charges[i][1], charges[i][2], charges[i][3]
    if admitted and fits and cost > 0 then
      (is_bucket[index] and take_bucket or take_window)(states[index], cost)
    elseif not fits and not is_bucket[index] then
      miss_window(states[index], cost)
    end
  end
  verdicts[#verdicts + 1] = unusable and 'x' or admitted and '1' or '0'
end
answer[2] = table.concat(verdicts)

for i = 1, count do
  if states[i].changed then (is_bucket[i] and save_bucket or save_window)(states[i]) end
end
return answer
