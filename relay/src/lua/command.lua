-- Puts a command into the inbox, once per id (I6). A move also changes the place: now when nobody holds the session, else
-- when the holder lets go. A move away from the runner that alone has the newest files is a person's to make; whoever claims is told.
-- KEYS
--   state
--   inbox
--   commands
-- ARGV
--   account
--   sid
--   id
--   kind
--   device            who sent it
--   body              sealed
--   place             JSON, '' for none
--   inbox_max         how many may wait
--   account_channel
-- RETURNS
--   ok n
--   repeated n        the number that the first one got
--   inbox-full
--   session-ended
--   no-session
local state = redis.call('HMGET', KEYS[1], 'account', 'holder', 'expires_at', 'status', 'inbox',
  'waits_since', 'unstored', 'checkpoint', 'snapshot', 'holders')
if state[1] ~= ARGV[1] then return { 'no-session' } end
local known = redis.call('HGET', KEYS[3], ARGV[3])
if known then return { 'repeated', tonumber(known) } end
if state[4] == 'done' or state[4] == 'failed' then return { 'session-ended' } end
if redis.call('XLEN', KEYS[2]) >= tonumber(ARGV[8]) then return { 'inbox-full' } end
local now = now_ms()
local n = tonumber(state[5]) + 1
redis.call('XADD', KEYS[2], string.format('%d-0', n), 'id', ARGV[3], 'kind', ARGV[4], 'at', now, 'device', ARGV[5],
  'body', ARGV[6], 'place', ARGV[7])
redis.call('HSET', KEYS[3], ARGV[3], n)
redis.call('HSET', KEYS[1], 'inbox', n, 'changed_at', now)
local live = is_live(state[2], state[3], now)
-- From now on it waits for a runner, unless it did before.
if not live and tonumber(state[6] or 0) == 0 then redis.call('HSET', KEYS[1], 'waits_since', now) end
if ARGV[7] ~= '' then
  if live then
    redis.call('HSET', KEYS[1], 'next_place', ARGV[7])
  else
    redis.call('HSET', KEYS[1], 'place', ARGV[7], 'next_place', '')
    local has_files = state[7] or ''
    if tonumber(state[8]) == 0 and tonumber(state[9]) > 0 then has_files = string.match(state[10] or '', '%S+') or '' end
    if has_files ~= '' and cjson.decode(ARGV[7]).prefer ~= has_files then
      redis.call('HSET', KEYS[1], 'unstored', '', 'left', has_files)
    end
    redis.call('HSET', KEYS[1], 'status', 'moving')
  end
end
redis.call('PUBLISH', ARGV[9], 'inbox ' .. ARGV[2])
redis.call('PUBLISH', ARGV[9], 'session ' .. ARGV[2])
return { 'ok', n }
