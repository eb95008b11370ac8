-- wrk script: the users in turn; prints one JSON object at the end.
-- arguments after "--": path, number of users; where they stand: "body" (POST, as /v1/check has it) or "header" (GET)
local requests = {}
local at = 0

function init(args)
  local path, users, place = args[1], tonumber(args[2]), args[3]
  for i = 1, place == "header" and users or 0 do
    requests[i] = wrk.format("GET", path, { ["X-User"] = string.format("user-%d", i) })
  end
  for i = 1, place == "body" and users or 0 do
    local body = string.format('{"domain":"bench","descriptors":[{"user":"user-%d"}]}', i)
    requests[i] = wrk.format("POST", path, { ["Content-Type"] = "application/json" }, body)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.timeout + errors.status
  io.write(string.format('{"calls":%d,"errors":%d,"seconds":%f,"p50_us":%f,"p99_us":%f}\n', summary.requests, failed,
    summary.duration / 1e6, latency:percentile(50), latency:percentile(99)))
end
