-- Goes before every script: what more than one of them needs.

-- Milliseconds on Redis' clock, the only clock that counts (I2).
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Is there a lease that has not run out? `holder` and `expires_at` as they stand in the state.
local function is_live(holder, expires_at, now)
  return holder and holder ~= '' and tonumber(expires_at) > now
end

-- Is there anything to do for a runner? What a session has seen of its inbox when it was let go gives it no work (sessions.ts).
local function has_work(status, inbox, newest, seen)
  if status == 'done' or status == 'failed' then return false end
  if status == 'running' or status == 'moving' then return true end
  return tonumber(newest) > tonumber(seen or 0) and redis.call('XLEN', inbox) > 0
end

-- Entries are many and short: what the relay knows of one is packed. Numbers of kinds and statuses never change.
--   box    the body, as bytes
--   of     u8 kind  u8 status of the hint, 0 for none  u32 epoch  u48 at, big-endian; then the hashes of its blobs, 32 bytes each
--   rest   JSON of what few have: hint (without the status), consumes, lease; or ''
-- All have the same fields in the same order, so that Redis stores the names once a node. Those of older versions: journal.ts.
local KINDS = { received = 1, intent = 2, outcome = 3, snapshot = 4, checkpoint = 5, event = 6, lease = 7 }
local STATUSES = { [''] = 0, running = 1, waiting = 2, idle = 3, moving = 4, done = 5, failed = 6 }

local function of_entry(kind, status, epoch, at)
  return struct.pack('>BBI4I6', KINDS[kind], STATUSES[status], epoch, at)
end

-- Writes one entry. `of`: from above. `blobs`: hashes, with anything between them. `rest`: a list of members of that JSON.
local function add_entry(journal, seq, of, box, blobs, rest)
  local hashes = {}
  for hash in string.gmatch(blobs, '%x+') do
    hashes[#hashes + 1] = string.gsub(hash, '%x%x', function(hex) return string.char(tonumber(hex, 16)) end)
  end
  redis.call('XADD', journal, string.format('%d-0', seq), 'box', box,
    'of', of .. table.concat(hashes),
    'rest', #rest > 0 and '{' .. table.concat(rest, ',') .. '}' or '')
end

-- Writes a lease entry. `place`: JSON of the place, '' for none.
local function add_lease_entry(journal, seq, epoch, at, change, holder, place)
  local lease = '{"change":"' .. change .. '","holder":"' .. holder .. '"'
  if place and place ~= '' then lease = lease .. ',"place":' .. place end
  add_entry(journal, seq, of_entry('lease', '', epoch, at), '', '', { '"lease":' .. lease .. '}' })
end
