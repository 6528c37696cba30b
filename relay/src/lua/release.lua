-- Gives the lease back. Where to continue: what the holder says, else what a move asked for meanwhile, else as before.
-- KEYS
--   state
--   journal
--   inbox
-- ARGV
--   account
--   sid
--   device
--   epoch
--   status
--   place             JSON, '' for none
--   seen              number of the newest command that needs no runner now: the session waits for something else
--   session_channel
--   account_channel
-- RETURNS
--   ok seq
--   lease-lost
--   no-session
local state = redis.call('HMGET', KEYS[1], 'account', 'holder', 'expires_at', 'epoch', 'seq', 'place', 'next_place',
  'inbox')
if state[1] ~= ARGV[1] then return { 'no-session' } end
local now = now_ms()
if state[2] ~= ARGV[3] or state[4] ~= ARGV[4] or not is_live(state[2], state[3], now) then return { 'lease-lost' } end
local place = state[6]
if ARGV[6] ~= '' then place = ARGV[6] elseif state[7] ~= '' then place = state[7] end
local seq = tonumber(state[5]) + 1
add_lease_entry(KEYS[2], seq, state[4], now, 'released', ARGV[3], place)
local waits_since = has_work(ARGV[5], KEYS[3], state[8], ARGV[7]) and now or 0
redis.call('HSET', KEYS[1], 'holder', '', 'expires_at', 0, 'seq', seq, 'status', ARGV[5], 'place', place,
  'next_place', '', 'seen', ARGV[7], 'waits_since', waits_since, 'changed_at', now)
redis.call('PUBLISH', ARGV[8], 'journal')
redis.call('PUBLISH', ARGV[9], 'session ' .. ARGV[2])
return { 'ok', seq }
