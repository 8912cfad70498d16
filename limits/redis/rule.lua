-- The rule of limits.State in Lua, under the names that it has there: state.go,
-- reserve.go, member.go and keystate.go say what is meant. What is loaded is what
-- the step asks for; sync.lua has how it is stored.
--
-- A claim is {id, keys, costs, pair, since, seq} and what claimOf says that is left out
-- as long as it is usual; refs counts the places where keys know it as waiting. Those
-- places hold {member, id}. All numbers are whole and below 2^53.

local GRANTED, PERMIT, TOKENS, PAUSED, TOO_LATE = 0, 1, 2, 3, 4
local NEVER = math.huge
local PATIENCE, GRACE, AWAY, NEAR = 64, 300000, 1000000, 100000

local now, epoch       -- of this step; the epoch is also the time at which it began
local learnUntil       -- nothing starts before
local self             -- the member that speaks
local keys, members    -- by name, loaded when first asked for
local touched, freed, wakes = {}, {}, {}
local permitFor, readyFor, turn -- which call what is above them

-- claimOf makes tables claims of the member.
local function claimOf(name)
  return {__index = {
    member = name, priority = 0, deadline = NEVER, cause = GRANTED, bypassed = 0, due = 0, refs = 0,
  }}
end

local function claimAt(place)
  return place and members[place[1]].waiting[place[2]]
end

-- Buckets.

local function refilled(k, level, last, at)
  local capacity, elapsed = k.burst * k.per, math.max(0, at - last)
  if elapsed > math.floor((capacity - level) / k.tokens) then return capacity end
  return level + elapsed * k.tokens
end

local function refill(k)
  if k.per > 0 and now >= math.min(k.pause, k.last) then
    k.level, k.last = refilled(k, k.level, k.last, now), now
  end
end

local function readyAt(k, level, last, cost)
  if cost > k.burst then return NEVER end
  return last + math.ceil(math.max(0, cost * k.per - level) / k.tokens)
end

local function ready(k, cost)
  return readyAt(k, k.level, k.last, cost)
end

-- Keys.

local function report(k)
  if not k.reported then
    k.reported = true
    touched[#touched + 1] = k
  end
end

local function touch(name)
  local k = keys[name]
  if not k.reported then
    refill(k)
    report(k)
  end
  return k
end

local function sameLimit(k, l)
  return k.concurrency == l[1] and k.tokens == l[2] and k.per == l[3] and k.burst == l[4]
end

local function isHost(k)
  return string.sub(k.name, 1, 5) == 'host/'
end

local function adopt(k, l)
  local per = k.per
  k.concurrency, k.tokens, k.per, k.burst = l[1], l[2], l[3], l[4]
  if per > 0 and k.per > 0 then
    k.level = math.min(math.floor(k.level / per), k.burst) * k.per
  elseif isHost(k) and k.pause > 0 then
    k.level, k.last = 0, k.pause
  else
    k.level, k.last = 0, math.min(epoch, now)
  end
  refill(k)
end

local function pause(name, till)
  local k = touch(name)
  if till <= math.max(now, k.pause) then return end
  k.pause = till
  if isHost(k) then k.level, k.last = 0, till end
end

-- Who goes before whom.

local function rankBefore(c, d)
  if c.priority ~= d.priority then
    return c.priority > d.priority
  elseif c.deadline ~= d.deadline then
    return c.deadline < d.deadline
  elseif c.since ~= d.since then
    return c.since < d.since
  end
  return c.seq < d.seq
end

-- headOf returns where the member's place is in heads, or would be.
local function headOf(heads, member)
  local at = 1
  while heads[at] and heads[at][1] < member do
    at = at + 1
  end
  return at, heads[at] and heads[at][1] == member
end

function turn(c)
  local t = c.since
  for i = 1, #c.keys do
    local k = keys[c.keys[i]]
    local a = claimAt(k.aside)
    if a and a.member == c.member and rankBefore(a, c) then t = math.max(t, turn(a)) end
    local at, known = headOf(k.saver, c.member)
    local s = known and claimAt(k.saver[at])
    if s and rankBefore(s, c) then t = math.max(t, turn(s)) end
  end
  return t
end

local function before(c, d)
  if c.member == d.member then return rankBefore(c, d) end
  local a, b = turn(c), turn(d)
  return a < b or a == b and c.member < d.member
end

local function silent(c)
  return c.due < now - GRACE
end

local function countsAgainst(c, d)
  return before(c, d) and (c.member == d.member or not silent(c))
end

-- Whether a claim may start.

local function paused(c)
  local till, name = 0, nil
  if c.pair and keys[c.pair].pause > 0 then till, name = keys[c.pair].pause, c.pair end
  for i = 1, #c.keys do
    local k = keys[c.keys[i]]
    if k.pause > till then till, name = k.pause, k.name end
  end
  return till, name
end

local function wantsOnly(c, k)
  if paused(c) > now then return false end
  for i = 1, #c.keys do
    local n, cost = keys[c.keys[i]], c.costs[i]
    if n ~= k and n.concurrency > 0 and n.inUse >= n.concurrency then return false end
    if n.per > 0 and cost > 0 then
      refill(n)
      if ready(n, cost) > now then return false end
    end
  end
  return true
end

function permitFor(k, c)
  local free = k.concurrency - k.inUse
  if k.concurrency == 0 or free <= 0 then return k.concurrency == 0 end
  local aside = claimAt(k.aside)
  if aside and countsAgainst(aside, c) then free = free - 1 end
  for i = 1, #k.passed do
    local w = free > 0 and claimAt(k.passed[i])
    if w and w.member ~= c.member and w ~= aside and countsAgainst(w, c) and wantsOnly(w, k) then
      free = free - 1
    end
  end
  return free > 0
end

local function permitted(c)
  for i = 1, #c.keys do if not permitFor(keys[c.keys[i]], c) then return false end end
  return true
end

local function savesFor(k, c)
  local best
  for i = 1, #k.saver do
    local s = claimAt(k.saver[i])
    if s and s ~= c and countsAgainst(s, c) and permitted(s) and (not best or before(s, best)) then
      best = s
    end
  end
  return best
end

local function otherwiseReady(c, k)
  local at = math.max((paused(c)), now)
  for i = 1, #c.keys do
    local n, cost = keys[c.keys[i]], c.costs[i]
    if n ~= k and n.per > 0 and cost > 0 then
      refill(n)
      at = math.max(at, readyFor(n, cost, c))
    end
  end
  return at
end

local function costAt(c, k)
  for i = 1, #c.keys do if c.keys[i] == k.name then return c.costs[i] end end
  return 0
end

function readyFor(k, cost, c)
  local at = ready(k, cost)
  local s = #k.saver > 0 and at ~= NEVER and savesFor(k, c)
  if not s then return at end
  local saved, start = costAt(s, k), otherwiseReady(s, k)
  local begins = math.max(start, ready(k, saved))
  if begins > s.deadline or begins == NEVER then return at end
  if readyAt(k, refilled(k, k.level, k.last, at) - cost * k.per, at, saved) <= start then return at end
  local after = refilled(k, k.level, k.last, begins) - saved * k.per
  return math.min(readyAt(k, after, begins, cost), ready(k, saved + cost))
end

local function limitedOnlyBy(c, k)
  for i = 1, #c.keys do
    local n = keys[c.keys[i]]
    if n.concurrency > 0 or n ~= k and n.per > 0 then return false end
  end
  return true
end

local function ahead(k, c)
  local cost = 0
  for i = 1, #k.saver do
    local w = claimAt(k.saver[i])
    if w and w.member ~= c.member and countsAgainst(w, c) and limitedOnlyBy(w, k) then
      cost = cost + costAt(w, k)
    end
  end
  return cost
end

local function aheadOf(k, m)
  local at, known = headOf(k.saver, m.name)
  local c = known and claimAt(k.saver[at])
  return c and ahead(k, c) or 0
end

local function block(v, cause, name, at)
  if v.cause == GRANTED then v.cause, v.key = cause, name end
  v.at = math.max(v.at, at)
end

local function blocked(c)
  local v = {cause = GRANTED, at = 0, earliest = now}
  if now > c.deadline then
    block(v, TOO_LATE, nil, 0)
    return v
  end
  local till, name = paused(c)
  if till > now then
    block(v, PAUSED, name, till)
    v.earliest = till
  end
  for i = 1, #c.keys do
    if not permitFor(keys[c.keys[i]], c) then block(v, PERMIT, c.keys[i], 0) end
  end
  for i = 1, #c.keys do
    local k, cost = keys[c.keys[i]], c.costs[i]
    if k.per > 0 and cost > 0 then
      v.earliest = math.max(v.earliest, ready(k, cost))
      local at = readyFor(k, cost, c)
      if at > now then
        block(v, TOKENS, k.name, math.max(at, math.min(readyAt(k, k.level - ahead(k, c) * k.per, k.last, cost), k.last + NEAR)))
      end
    end
  end
  return v
end

-- Where waiting claims are known.

local function put(heads, c)
  local at, known = headOf(heads, c.member)
  local old = known and claimAt(heads[at])
  if old then old.refs = old.refs - 1 end
  if known then
    heads[at] = {c.member, c.id}
  else
    table.insert(heads, at, {c.member, c.id})
  end
  c.refs = c.refs + 1
end

local function drop(heads, c)
  local at, known = headOf(heads, c.member)
  if known and heads[at][2] == c.id then
    table.remove(heads, at)
    c.refs = c.refs - 1
  end
end

local function leaveQueues(c)
  for i = 1, #c.keys do
    local k = keys[c.keys[i]]
    drop(k.passed, c)
    drop(k.saver, c)
  end
end

local function leave(c)
  if c.refs == 0 then return end
  leaveQueues(c)
  for i = 1, #c.keys do
    local k = keys[c.keys[i]]
    if claimAt(k.aside) == c then
      k.aside = false
      c.refs = c.refs - 1
    end
  end
end

local function setAside(c)
  for i = 1, #c.keys do
    local k = keys[c.keys[i]]
    local a = claimAt(k.aside)
    if not a or a.member ~= c.member and silent(a) then
      if a then a.refs = a.refs - 1 end
      k.aside = {c.member, c.id}
      c.refs = c.refs + 1
    end
  end
end

local function wait(c, v)
  c.cause, c.due = v.cause, v.at
  if v.cause == PERMIT then
    c.due = now + AWAY
    local passed = keys[v.key].passed
    local at, known = headOf(passed, c.member)
    local old = known and claimAt(passed[at])
    if not old or rankBefore(c, old) then put(passed, c) end
    return
  end
  if v.earliest > c.deadline or not permitted(c) then return end
  for i = 1, #c.keys do
    local k = keys[c.keys[i]]
    if k.per > 0 and c.costs[i] > 0 then
      local at, known = headOf(k.saver, c.member)
      local old = known and claimAt(k.saver[at])
      if not old or rankBefore(c, old) or not permitted(old) then put(k.saver, c) end
    end
  end
end

-- Steps.

local function forget(c)
  for i = 1, #c.keys do
    local k = keys[c.keys[i]]
    k.claims = k.claims - 1
    freed[#freed + 1] = k
  end
end

local function giveBack(c, refund)
  for i = 1, #c.keys do
    local k = keys[c.keys[i]]
    k.inUse = k.inUse - 1
    if refund and k.per > 0 then
      refill(k)
      k.level = math.min(k.burst * k.per, k.level + c.costs[i] * k.per)
      report(k)
    end
  end
  forget(c)
end

local function take(c)
  leave(c)
  for i = 1, #c.keys do
    local k = keys[c.keys[i]]
    k.inUse = k.inUse + 1
    local price = c.costs[i] * k.per
    if k.per > 0 and k.level >= price then k.level = k.level - price end
    for j = 1, #k.passed do
      local w = claimAt(k.passed[j])
      if w and countsAgainst(w, c) then
        w.bypassed = w.bypassed + 1
        if w.bypassed >= PATIENCE then setAside(w) end
      end
    end
  end
end

local function nextHead(heads, m)
  local first
  for i = 1, #heads do
    local w = claimAt(heads[i])
    if w and w.due > now and w.member ~= m.name and (not first or before(w, first)) then
      first = w
    end
  end
  return first
end

local function wakeAt(k, m)
  local free = k.concurrency - k.inUse
  for i = 1, #k.passed do
    local w = free > 0 and claimAt(k.passed[i])
    if w and w.due <= now and w.member ~= m.name and not silent(w) then free = free - 1 end
  end
  while free > 0 do
    local w = nextHead(k.passed, m)
    if not w then return end
    w.due, wakes[w.member], free = now, true, free - 1
  end
end

local function wake(m, room)
  for _, c in pairs(m.waiting) do
    if c.cause == PERMIT and c.due > now then c.due = room and now + AWAY or now - GRACE - 1 end
  end
  for i = 1, #freed do wakeAt(freed[i], m) end
  for i = 1, #touched do wakeAt(touched[i], m) end
  freed = {}
end
