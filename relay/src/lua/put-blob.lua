-- Stores a blob of a session.
-- KEYS
--   state
--   blobs
--   blob
-- ARGV
--   account
--   hash
--   size
--   bytes             sealed
-- RETURNS
--   stored
--   known             it is there already
--   no-session
if redis.call('HGET', KEYS[1], 'account') ~= ARGV[1] then return { 'no-session' } end
if redis.call('HEXISTS', KEYS[2], ARGV[2]) == 1 then return { 'known' } end
redis.call('SET', KEYS[3], ARGV[4])
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('HINCRBY', KEYS[1], 'bytes', ARGV[3])
return { 'stored' }
