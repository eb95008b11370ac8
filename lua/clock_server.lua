-- The clock of a script: the server's, in µs since 1970 (below 2^53 until 2255). Tests put another prelude in its place.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local shortest_expiry = 1 -- ms
local trusted_lead = 0    -- µs by which a stored time may always be ahead of the server's
