-- Takes the lease of a session that nobody holds: a new epoch begins. A lease that ran out unnoticed is ended first.
-- KEYS
--   state
--   journal
--   partial           of the former holder; what it was about is asked again
--   offers
-- ARGV
--   account
--   sid
--   device
--   ttl_ms
--   session_channel
--   account_channel
-- RETURNS
--   ok epoch seq snapshot checkpoint place
--   lease-held
--   no-session
local state = redis.call('HMGET', KEYS[1], 'account', 'holder', 'expires_at', 'epoch', 'seq', 'snapshot', 'checkpoint',
  'place', 'next_place')
if state[1] ~= ARGV[1] then return { 'no-session' } end
local now = now_ms()
local holder = state[2]
if is_live(holder, state[3], now) then return { 'lease-held' } end
local epoch, seq, place = tonumber(state[4]), tonumber(state[5]), state[8]
if holder ~= '' then
  if state[9] ~= '' then place = state[9] end
  epoch, seq = epoch + 1, seq + 1
  add_lease_entry(KEYS[2], seq, epoch, now, 'expired', holder, place)
end
epoch, seq = epoch + 1, seq + 1
add_lease_entry(KEYS[2], seq, epoch, now, 'claimed', ARGV[3], place)
redis.call('HSET', KEYS[1], 'holder', ARGV[3], 'expires_at', now + tonumber(ARGV[4]), 'epoch', epoch, 'seq', seq,
  'place', place, 'changed_at', now)
if holder ~= '' then redis.call('HSET', KEYS[1], 'next_place', '') end
redis.call('DEL', KEYS[3], KEYS[4])
redis.call('PUBLISH', ARGV[5], 'journal')
redis.call('PUBLISH', ARGV[6], 'session ' .. ARGV[2])
return { 'ok', epoch, seq, tonumber(state[6]), tonumber(state[7]), place }
