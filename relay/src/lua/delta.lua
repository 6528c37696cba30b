-- Passes a partial answer on to watchers; keeps it for late ones when asked to.
-- KEYS
--   state
--   partial
-- ARGV
--   account
--   device
--   epoch
--   effect
--   body              sealed
--   keep_ms           how long to keep it, 0 for not at all
--   session_channel
-- RETURNS
--   ok
--   lease-lost
--   no-session
local state = redis.call('HMGET', KEYS[1], 'account', 'holder', 'expires_at', 'epoch')
if state[1] ~= ARGV[1] then return { 'no-session' } end
if state[2] ~= ARGV[2] or state[4] ~= ARGV[3] or not is_live(state[2], state[3], now_ms()) then return { 'lease-lost' } end
if ARGV[6] ~= '0' then
  redis.call('HSET', KEYS[2], 'effect', ARGV[4], 'body', ARGV[5])
  redis.call('PEXPIRE', KEYS[2], ARGV[6])
end
redis.call('PUBLISH', ARGV[7], 'delta ' .. ARGV[4] .. ' ' .. ARGV[5])
return { 'ok' }
