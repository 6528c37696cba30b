-- Makes a session. The same again changes nothing.
-- KEYS
--   state
-- ARGV
--   account
--   sid
--   meta              sealed
--   place             JSON
--   account_channel
-- RETURNS
--   created
--   exists
--   no-session        the sid belongs to another account
local account = redis.call('HGET', KEYS[1], 'account')
if account then
  if account == ARGV[1] then return { 'exists' } end
  return { 'no-session' }
end
local now = now_ms()
redis.call('HSET', KEYS[1], 'account', ARGV[1], 'meta', ARGV[3], 'status', 'idle', 'seq', 0, 'epoch', 0,
  'holder', '', 'expires_at', 0, 'place', ARGV[4], 'next_place', '', 'snapshot', 0, 'checkpoint', 0, 'inbox', 0,
  'seen', 0, 'waits_since', 0, 'holders', '', 'bytes', 0, 'told_at', 0, 'created_at', now, 'changed_at', now)
redis.call('PUBLISH', ARGV[5], 'session ' .. ARGV[2])
return { 'created' }
