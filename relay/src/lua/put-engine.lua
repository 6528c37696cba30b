-- Stores an engine of an account. There are few of them, and which one an old session needs nobody here can tell: none is ever
-- forgotten.
-- KEYS
--   engines
--   engine
-- ARGV
--   name
--   size
--   engines_max
--   bytes             sealed
-- RETURNS
--   stored
--   known             it is there already
--   storage-limit
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return { 'known' } end
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then return { 'storage-limit' } end
redis.call('SET', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return { 'stored' }
