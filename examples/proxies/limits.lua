-- Asks Sluice about a request; the answer is in variables that haproxy.cfg uses.
-- deny_status: whatever the policy says, so that haproxy.cfg knows a denial.
local url = "http://127.0.0.1:8080/v1/authorize?from=x-original&deny_status=429"
-- What the policy looks at, and by what the lines of such a field are joined. Nothing else is passed on, so that no other field can
-- make the question fail; and joined, as HAProxy 2.6 crashes on a question of more than a hundred lines.
local passed_on = { ["x-api-key"] = ", ", authorization = ", ", cookie = "; ", accept = ", " }
local wanted = {
  limits_retry = "retry-after",
  limits_state = "ratelimit",
  limits_policy = "ratelimit-policy",
  limits_challenge = "www-authenticate",
}

local function all_lines(values, separator)
  local lines = {}
  local n = 0
  while values[n] do
    lines[n + 1] = values[n]
    n = n + 1
  end
  return table.concat(lines, separator)
end

-- Where Sluice has not answered, HAProxy's own pages (502, 503, 504) or nothing come; Sluice's errors are JSON.
local function is_unreachable(answer)
  if not answer or not answer.status or answer.status == 0 then
    return true
  end
  local types = answer.headers and answer.headers["content-type"]
  local is_json = types and types[0] and types[0]:find("json", 1, true)
  return answer.status >= 502 and answer.status <= 504 and not is_json
end

-- An error in here, such as of a question that is too large, leaves limits_status unset, and haproxy.cfg refuses the request.
core.register_action("limits", { "http-req" }, function(txn)
  local headers = txn.http:req_get_headers()
  local path = txn.sf:pathq() -- nothing: OPTIONS *
  local ask = {
    ["x-original-method"] = { txn.sf:method() },
    ["x-original-uri"] = { path ~= "" and path or "*" },
    ["x-forwarded-for"] = { txn.sf:src() },
    -- For a policy that looks at the host: ["host"] = { txn.sc:host_only(txn.sf:req_hdr("host")) },
  }
  for name, separator in pairs(passed_on) do
    if headers[name] then
      ask[name] = { all_lines(headers[name], separator) }
    end
  end
  -- With `delay: hold` in the policy make timeout (ms) longer than http.max_hold: a held request that is not waited for would pass.
  local answer = core.httpclient():get({ url = url, headers = ask, timeout = 250 })
  if is_unreachable(answer) then
    txn:set_var("txn.limits_unreachable", true)
    return
  end
  txn:set_var("txn.limits_status", answer.status)
  if answer.body then
    txn:set_var("txn.limits_body", answer.body)
  end
  for variable, name in pairs(wanted) do
    local values = answer.headers and answer.headers[name]
    if values and values[0] then
      txn:set_var("txn." .. variable, values[0])
    end
  end
end)
