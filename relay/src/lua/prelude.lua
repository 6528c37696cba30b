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

-- Writes one entry. All have the same fields in the same order, so that Redis stores the names once a node. `box` is the body as
-- bytes; entries of older versions have it as base64url, in `body`.
local function add_entry(journal, seq, epoch, kind, at, size, box, blobs, hint, consumes, lease)
  redis.call('XADD', journal, string.format('%d-0', seq), 'epoch', epoch, 'kind', kind, 'at', at, 'size', size,
    'box', box, 'blobs', blobs, 'hint', hint, 'consumes', consumes, 'lease', lease)
end

-- Writes a lease entry. `place`: JSON of the place, '' for none.
local function add_lease_entry(journal, seq, epoch, at, change, holder, place)
  local lease = '{"change":"' .. change .. '","holder":"' .. holder .. '"'
  if place and place ~= '' then lease = lease .. ',"place":' .. place end
  add_entry(journal, seq, epoch, 'lease', at, 0, '', '', '', '', lease .. '}')
end
