-- Extends a lease that has not run out.
-- KEYS
--   state
-- ARGV
--   account
--   device
--   epoch
--   ttl_ms
-- RETURNS
--   ok inbox          number of the newest command, so that a lost notice is found
--   lease-lost
--   no-session
local state = redis.call('HMGET', KEYS[1], 'account', 'holder', 'expires_at', 'epoch', 'inbox')
if state[1] ~= ARGV[1] then return { 'no-session' } end
local now = now_ms()
if state[2] ~= ARGV[2] or state[4] ~= ARGV[3] or not is_live(state[2], state[3], now) then return { 'lease-lost' } end
redis.call('HSET', KEYS[1], 'expires_at', now + tonumber(ARGV[4]))
return { 'ok', tonumber(state[5]) }
