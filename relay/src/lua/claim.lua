-- Takes the lease of a session that nobody holds: a new epoch begins. A lease that ran out unnoticed is ended first. Only a
-- runner that the place allows gets it: the same rule as `mayTake` in placing.ts.
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
--   tags              of the device, with spaces between them
--   holders_max       how many of those that held it last are remembered
--   session_channel
--   account_channel
-- RETURNS
--   ok epoch seq snapshot checkpoint place waited_ms status left
--   lease-held
--   placed-elsewhere
--   no-session
local state = redis.call('HMGET', KEYS[1], 'account', 'holder', 'expires_at', 'epoch', 'seq', 'snapshot', 'checkpoint',
  'place', 'next_place', 'waits_since', 'holders', 'status', 'unstored', 'left')
if state[1] ~= ARGV[1] then return { 'no-session' } end
local now = now_ms()
local holder, device = state[2], ARGV[3]
if is_live(holder, state[3], now) then return { 'lease-held' } end
local epoch, seq, place = tonumber(state[4]), tonumber(state[5]), state[8]
if holder ~= '' and state[9] ~= '' then place = state[9] end

local unstored = state[13] or ''
if unstored ~= '' and unstored ~= device then return { 'placed-elsewhere' } end
local wanted = cjson.decode(place)
local tagged = wanted.pool and string.find(' ' .. ARGV[5] .. ' ', ' ' .. wanted.pool .. ' ', 1, true)
if wanted.prefer then
  if wanted.prefer ~= device and (wanted.pin or tonumber(state[7]) == 0) then return { 'placed-elsewhere' } end
elseif wanted.pool and wanted.pin and not tagged then
  return { 'placed-elsewhere' }
end

if holder ~= '' then
  epoch, seq = epoch + 1, seq + 1
  add_lease_entry(KEYS[2], seq, epoch, now, 'expired', holder, place)
end
epoch, seq = epoch + 1, seq + 1
add_lease_entry(KEYS[2], seq, epoch, now, 'claimed', device, place)

local holders, kept = device, 1
for earlier in string.gmatch(state[11] or '', '%S+') do
  if earlier ~= device and kept < tonumber(ARGV[6]) then
    holders, kept = holders .. ' ' .. earlier, kept + 1
  end
end
local waits_since = tonumber(state[10] or 0)
local waited_ms = waits_since > 0 and now - waits_since or 0
redis.call('HSET', KEYS[1], 'holder', device, 'expires_at', now + tonumber(ARGV[4]), 'epoch', epoch, 'seq', seq,
  'place', place, 'holders', holders, 'seen', 0, 'waits_since', 0, 'left', '', 'changed_at', now)
if holder ~= '' then redis.call('HSET', KEYS[1], 'next_place', '') end
redis.call('DEL', KEYS[3], KEYS[4])
redis.call('PUBLISH', ARGV[7], 'journal')
redis.call('PUBLISH', ARGV[8], 'session ' .. ARGV[2])
return { 'ok', epoch, seq, tonumber(state[6]), tonumber(state[7]), place, waited_ms, state[12],
  state[14] or '' }
