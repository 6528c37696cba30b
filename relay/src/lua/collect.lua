-- Forgets the blobs that only superseded snapshots or checkpoints refer to. When one proves bad, another one is needed: a snapshot
-- that names what it keeps of earlier ones says what; else the one before keeps its own.
-- KEYS
--   state
--   blobs
-- ARGV
--   account
--   kind              snapshot or checkpoint
--   seq               of the newest such entry
--   hashes            of the blobs that it refers to or keeps, separated by spaces
--   whole             1 when that is all which is to be kept of this kind, else 0
-- RETURNS
--   ok bytes hashes   what was forgotten, for the caller to delete; hashes separated by spaces
--   known             this entry, or a newer one, was seen before
--   no-session
local kind, seq, newest, whole = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5] == '1'
local other = kind == 'snapshot' and 'checkpoint' or 'snapshot'
local state = redis.call('HMGET', KEYS[1], 'account', kind .. '_collected', kind .. '_blobs', kind .. '_blobs_before',
  other .. '_blobs', other .. '_blobs_before')
if state[1] ~= ARGV[1] then return { 'no-session' } end
if seq <= tonumber(state[2] or 0) then return { 'known' } end
local before, outdated = state[3] or '', state[4] or ''
if whole then before, outdated = '', before .. ' ' .. outdated end
local kept = {}
for _, list in ipairs({ newest, before, state[5] or '', state[6] or '' }) do
  for hash in string.gmatch(list, '%x+') do kept[hash] = true end
end
local bytes, forgotten = 0, {}
for hash in string.gmatch(outdated, '%x+') do
  local size = not kept[hash] and redis.call('HGET', KEYS[2], hash)
  if size then
    redis.call('HDEL', KEYS[2], hash)
    bytes = bytes + tonumber(size)
    forgotten[#forgotten + 1] = hash
  end
end
redis.call('HSET', KEYS[1], kind .. '_collected', seq, kind .. '_blobs', newest, kind .. '_blobs_before', before)
-- Lua writes minus zero as -0, which Redis takes for no number.
if bytes > 0 then redis.call('HINCRBY', KEYS[1], 'bytes', -bytes) end
return { 'ok', bytes, table.concat(forgotten, ' ') }
