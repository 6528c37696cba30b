-- Ends a runner's presence, unless a newer connection of the same runner stands for it by now.
-- KEYS
--   online
-- ARGV
--   connection
-- RETURNS
--   left
--   other
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return { 'other' } end
redis.call('DEL', KEYS[1])
return { 'left' }
