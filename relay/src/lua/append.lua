-- Writes entries at the end of the journal, all or none (I1, I2), and takes the commands that they consume out of the inbox
-- (I6). Everything is checked before anything is written.
-- KEYS
--   state
--   journal
--   inbox
--   blobs
--   partial           ends with an outcome
-- ARGV
--   account
--   sid
--   device
--   epoch
--   first             seq of the first entry
--   session_channel
--   account_channel
--   entries...        kind, box, blobs (separated by spaces), hint (JSON or '', without the status), status (or ''), n and id
--                     of the consumed command (or '' and ''), blobs that it keeps (like blobs): eight for each entry
-- RETURNS
--   ok seq at
--   repeated seq at   these very entries are there already: the answer to the first try was lost
--   lease-lost
--   wrong-seq tail
--   already-consumed n
--   no-blob hash
--   no-session
local HEAD, WIDTH = 7, 8
local state = redis.call('HMGET', KEYS[1], 'account', 'holder', 'expires_at', 'epoch', 'seq', 'status', 'bytes',
  'told_at')
if state[1] ~= ARGV[1] then return { 'no-session' } end
local now = now_ms()
if state[2] ~= ARGV[3] or state[4] ~= ARGV[4] or not is_live(state[2], state[3], now) then return { 'lease-lost' } end

local first, tail = tonumber(ARGV[5]), tonumber(state[5])
local last = first + (#ARGV - HEAD) / WIDTH - 1
if first <= tail and last <= tail then
  local found = redis.call('XRANGE', KEYS[2], string.format('%d-0', first), string.format('%d-0', last))
  local same, written_at = #found == last - first + 1, now
  for i = 1, #found do
    local fields, base = found[i][2], HEAD + (i - 1) * WIDTH
    -- One that an older version wrote is told apart by the runner itself.
    local at = fields[3] == 'of' and struct.unpack('>I6', fields[4], 7)
    local of = at and of_entry(ARGV[base + 1], ARGV[base + 5], ARGV[4], at)
    same = same and of == string.sub(fields[4], 1, 12) and fields[2] == ARGV[base + 2]
    written_at = at
  end
  if same then return { 'repeated', last, written_at } end
end
if first ~= tail + 1 then return { 'wrong-seq', tail } end

local consumed, ofs = {}, {}
for base = HEAD, #ARGV - 1, WIDTH do
  for hash in string.gmatch(ARGV[base + 3] .. ' ' .. ARGV[base + 8], '%x+') do
    if redis.call('HEXISTS', KEYS[4], hash) == 0 then return { 'no-blob', hash } end
  end
  ofs[base] = of_entry(ARGV[base + 1], ARGV[base + 5], ARGV[4], now)
  local n = ARGV[base + 6]
  if n ~= '' then
    local found = redis.call('XRANGE', KEYS[3], n .. '-0', n .. '-0')[1]
    if consumed[n] or not found or found[2][2] ~= ARGV[base + 7] then return { 'already-consumed', tonumber(n) } end
    consumed[n] = true
  end
end

local seq, bytes, status, changes = tail, tonumber(state[7]), state[6], {}
for base = HEAD, #ARGV - 1, WIDTH do
  seq = seq + 1
  local kind, box, hint, n, rest = ARGV[base + 1], ARGV[base + 2], ARGV[base + 4], ARGV[base + 6], {}
  if hint ~= '' then rest[1] = '"hint":' .. hint end
  if n ~= '' then
    rest[#rest + 1] = '"consumes":{"n":' .. n .. ',"id":"' .. ARGV[base + 7] .. '"}'
    redis.call('XDEL', KEYS[3], n .. '-0')
  end
  add_entry(KEYS[2], seq, ofs[base], box, ARGV[base + 3], rest)
  bytes = bytes + #box
  if ARGV[base + 5] ~= '' then status = ARGV[base + 5] end
  if kind == 'snapshot' or kind == 'checkpoint' then
    changes[#changes + 1] = kind
    changes[#changes + 1] = seq
  end
  -- Who alone has the newest files: '' when they are stored.
  local unstored = string.find(hint, '"unstored":true', 1, true) and ARGV[3]
  if unstored or kind == 'checkpoint' then
    changes[#changes + 1] = 'unstored'
    changes[#changes + 1] = unstored or ''
  end
  if kind == 'outcome' then redis.call('DEL', KEYS[5]) end
end
redis.call('HSET', KEYS[1], 'seq', seq, 'status', status, 'bytes', bytes, 'changed_at', now, unpack(changes))
redis.call('PUBLISH', ARGV[6], 'journal')
-- The list of sessions is told of what matters there; that the journal grew, at most once a second.
if status ~= state[6] or next(consumed) or now - tonumber(state[8] or 0) >= 1000 then
  redis.call('HSET', KEYS[1], 'told_at', now)
  redis.call('PUBLISH', ARGV[7], 'session ' .. ARGV[2])
end
return { 'ok', seq, now }
