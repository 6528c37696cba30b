-- Replaces a session's sealed metadata.
-- KEYS
--   state
-- ARGV
--   account
--   sid
--   meta              sealed
--   account_channel
-- RETURNS
--   ok
--   no-session
if redis.call('HGET', KEYS[1], 'account') ~= ARGV[1] then return { 'no-session' } end
redis.call('HSET', KEYS[1], 'meta', ARGV[3], 'changed_at', now_ms())
redis.call('PUBLISH', ARGV[4], 'session ' .. ARGV[2])
return { 'ok' }
