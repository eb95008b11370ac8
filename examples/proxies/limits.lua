-- Asks Sluice about a request; the answer is in variables that haproxy.cfg uses.
local url = "http://127.0.0.1:8080/v1/authorize?from=x-original"
-- What the policy looks at.
local passed_on = { "x-api-key", "authorization", "cookie", "accept" }
local wanted = {
  limits_retry = "retry-after",
  limits_state = "ratelimit",
  limits_policy = "ratelimit-policy",
}

core.register_action("limits", { "http-req" }, function(txn)
  local headers = txn.http:req_get_headers()
  local ask = {
    ["x-original-method"] = { txn.sf:method() },
    ["x-original-uri"] = { txn.sf:pathq() },
    ["x-forwarded-for"] = { txn.sf:src() },
  }
  for _, name in ipairs(passed_on) do
    if headers[name] and headers[name][0] then
      ask[name] = { headers[name][0] }
    end
  end
  local answer = core.httpclient():get({ url = url, headers = ask, timeout = 250 })
  if not answer then
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
