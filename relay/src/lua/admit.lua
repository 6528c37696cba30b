-- Lets an account in while there is room.
-- KEYS
--   accounts
-- ARGV
--   account
--   accounts_max
-- RETURNS
--   ok
--   accounts-full
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return { 'ok' } end
if redis.call('SCARD', KEYS[1]) >= tonumber(ARGV[2]) then return { 'accounts-full' } end
redis.call('SADD', KEYS[1], ARGV[1])
return { 'ok' }
