-- Offers a free session to the first candidate that has not let an offer pass. Whoever has one outstanding is waited for;
-- when all have let it pass, a new round begins.
-- KEYS
--   state
--   offers
-- ARGV
--   account
--   sid
--   patience_ms       how long an offer may stay unanswered
--   account_channel
--   candidates...     runners, best first
-- RETURNS
--   offered device round
--   waiting device round   for the answer to an earlier offer
--   held              somebody took it
--   no-session
local HEAD = 4
local state = redis.call('HMGET', KEYS[1], 'account', 'holder', 'expires_at')
if state[1] ~= ARGV[1] then return { 'no-session' } end
local now = now_ms()
if is_live(state[2], state[3], now) then return { 'held' } end
local chosen
local round = 1
for i = HEAD + 1, #ARGV do
  local at, in_round = string.match(redis.call('HGET', KEYS[2], ARGV[i]) or '', '^(%d+) (%d+)$')
  if not at then
    chosen = chosen or ARGV[i]
  else
    round = math.max(round, tonumber(in_round))
    if not chosen and now - tonumber(at) < tonumber(ARGV[3]) then return { 'waiting', ARGV[i], round } end
  end
end
if not chosen then
  redis.call('DEL', KEYS[2])
  chosen, round = ARGV[HEAD + 1], round + 1
end
redis.call('HSET', KEYS[2], chosen, now .. ' ' .. round)
redis.call('PEXPIRE', KEYS[2], 60000)
redis.call('PUBLISH', ARGV[4], 'offer ' .. chosen .. ' ' .. ARGV[2])
return { 'offered', chosen, round }
