-- Ends a lease that has run out. The epoch moves on, so that whoever held it is refused even if nobody claims.
-- KEYS
--   state
--   journal
--   inbox
-- ARGV
--   account
--   sid
--   session_channel
--   account_channel
-- RETURNS
--   expired seq
--   held              the lease has not run out
--   free              nobody holds it
--   no-session
local state = redis.call('HMGET', KEYS[1], 'account', 'holder', 'expires_at', 'epoch', 'seq', 'place', 'next_place',
  'status', 'inbox')
if state[1] ~= ARGV[1] then return { 'no-session' } end
local now = now_ms()
if state[2] == '' then return { 'free' } end
if is_live(state[2], state[3], now) then return { 'held' } end
local place = state[6]
if state[7] ~= '' then place = state[7] end
local epoch, seq = tonumber(state[4]) + 1, tonumber(state[5]) + 1
add_lease_entry(KEYS[2], seq, epoch, now, 'expired', state[2], place)
redis.call('HSET', KEYS[1], 'holder', '', 'expires_at', 0, 'epoch', epoch, 'seq', seq, 'place', place,
  'next_place', '', 'waits_since', has_work(state[8], KEYS[3], state[9], 0) and now or 0, 'changed_at', now)
redis.call('PUBLISH', ARGV[3], 'journal')
redis.call('PUBLISH', ARGV[4], 'session ' .. ARGV[2])
return { 'expired', seq }
