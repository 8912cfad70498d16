-- One step of one member: what it says, decided by the rule, and what is kept.
--
--   {NS}               hash    epoch, run (of the server), learn (until when), heard
--                              (about when anybody was heard of last)
--   {NS}:leases        zset    members, by when their leases end
--   {NS}:key:KEY       string  what is left of a key; gone when it is as new
--   {NS}:member:NAME   hash    each claim it was granted, by ID; waiting; seq, reply
--   {NS}:wake:NAME     channel
--
-- It answers with {status, now, epoch, learn, verdicts, levels}.

local request = cjson.decode(ARGV[1])
local space, leases = KEYS[1], KEYS[1] .. ':leases'
local grants, written, removed = {}, {}, {} -- of self: by ID; and what changes of them
for _, list in ipairs({'names', 'limits', 'releases', 'refunds', 'withdrawn', 'pauses', 'lanes', 'claims', 'held'}) do
  request[list] = request[list] or {}
end

local function keyAt(name) return space .. ':key:' .. name end
local function memberAt(name) return space .. ':member:' .. name end

-- inParts calls with a list's elements, as many at a time as Lua allows.
local function inParts(list, call)
  for i = 1, #list, 1000 do call(unpack(list, i, math.min(i + 999, #list))) end
end

-- What is stored.

-- idleAt is from when on the key is as if nobody had ever used it.
local function idleAt(k)
  if k.claims > 0 then return NEVER end
  return math.max(k.pause, k.per > 0 and ready(k, k.burst) or 0)
end

local function loadKey(name, text)
  local f = text and cmsgpack.unpack(text) or {epoch, 0, 0, 0, 0, 0, 0, 0, 0, 0, {}, {}, false}
  local k = {
    name = name, text = text, concurrency = f[2], tokens = f[3], per = f[4], burst = f[5], inUse = f[6],
    claims = f[7], level = f[8], last = f[9], pause = f[10], passed = f[11], saver = f[12], aside = f[13],
  }
  if f[1] ~= epoch then -- what was taken since is not known
    k.level, k.last = 0, math.max(k.last, math.min(epoch, now))
  end
  if idleAt(k) <= now then k.concurrency, k.tokens, k.per, k.burst, k.pause = 0, 0, 0, 0, 0 end
  keys[name] = k
  return k
end

keys = setmetatable({}, {__index = function(_, name)
  return loadKey(name, redis.call('GET', keyAt(name)))
end})

members = setmetatable({}, {__index = function(all, name)
  local text = redis.call('HGET', memberAt(name), 'waiting')
  local m = {name = name, text = text, waiting = text and cmsgpack.unpack(text) or {}, claim = claimOf(name)}
  for _, c in pairs(m.waiting) do setmetatable(c, m.claim) end
  all[name] = m
  return m
end})

local function storeKey(k)
  local text = cmsgpack.pack({
    epoch, k.concurrency, k.tokens, k.per, k.burst, k.inUse,
    k.claims, k.level, k.last, k.pause, k.passed, k.saver, k.aside,
  })
  local idle = idleAt(k)
  if idle <= now then text = nil end
  if not text and k.text then
    redis.call('DEL', keyAt(k.name))
  elseif text and idle == NEVER then
    redis.call('SET', keyAt(k.name), text)
  elseif text then
    redis.call('SET', keyAt(k.name), text, 'PX', math.ceil((idle - now) / 1000) + 60000)
  end
end

-- storeMember also drops the waiting claims that nothing is kept for.
local function storeMember(m)
  for id, c in pairs(m.waiting) do
    if c.refs == 0 then
      m.waiting[id] = nil
      forget(c)
    end
  end
  local text = next(m.waiting) and cmsgpack.pack(m.waiting)
  if text and text ~= m.text then
    redis.call('HSET', memberAt(m.name), 'waiting', text)
  elseif m.text and not text then
    redis.call('HDEL', memberAt(m.name), 'waiting')
  end
end

local function store()
  for _, m in pairs(members) do storeMember(m) end
  for _, k in pairs(keys) do storeKey(k) end
  inParts(written, function(...) redis.call('HSET', memberAt(self.name), ...) end)
  inParts(removed, function(...) redis.call('HDEL', memberAt(self.name), ...) end)
  for name in pairs(wakes) do redis.call('PUBLISH', space .. ':wake:' .. name, '') end
end

local function write(field, value)
  written[#written + 1], written[#written + 2] = field, value
end

-- grant returns what is stored of a granted claim.
local read = {}
local function grant(text)
  local c = read[text]
  if not c then
    c = {}
    c.keys, c.costs = cmsgpack.unpack(text)
    read[text] = c
  end
  return c
end

-- Epoch and leases.

local heard -- about when anybody was heard of last; nil: never

local function extendAll()
  for _, name in ipairs(redis.call('ZRANGE', leases, 0, -1)) do
    redis.call('ZADD', leases, now + request.ttl, name)
  end
end

-- begin finds the epoch. Another server than the one that began it may not have all
-- that was written: then an epoch begins, as where there is none.
local function begin()
  local time = redis.call('TIME')
  now = request.now or time[1] * 1000000 + time[2]
  local info = redis.pcall('INFO', 'server')
  local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
  local e = redis.call('HMGET', space, 'epoch', 'run', 'learn', 'heard')
  heard = e[4] and tonumber(e[4])
  if e[1] and e[2] == run then
    epoch, learnUntil = tonumber(e[1]), tonumber(e[3])
    return
  end
  epoch, learnUntil = now, now + request.learn
  redis.call('HSET', space, 'epoch', epoch, 'run', run, 'learn', learnUntil, 'heard', now)
  extendAll()
end

-- depart is State.Leave.
local function depart(name)
  local m = members[name]
  local all = redis.call('HGETALL', memberAt(name))
  for i = 1, #all, 2 do if tonumber(all[i]) then giveBack(grant(all[i + 1]), false) end end
  for _, c in pairs(m.waiting) do
    leave(c)
    forget(c)
  end
  m.waiting, m.text = {}, false
  redis.call('DEL', memberAt(name))
  redis.call('ZREM', leases, name)
  wake(m, true)
end

-- reap ends members whose leases have ended. Time in which nobody was heard of does
-- not count: it may have been the server that was not there.
local function reap()
  local silence = now - (heard or now)
  if silence < 0 then
    extendAll()
  elseif silence > request.ttl / 2 then
    for _, name in ipairs(redis.call('ZRANGE', leases, 0, -1)) do
      redis.call('ZINCRBY', leases, silence, name)
    end
  end
  if not heard or silence < 0 or silence > request.ttl / 8 then redis.call('HSET', space, 'heard', now) end
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', '(' .. string.format('%.0f', now))) do
    if name ~= request.member then depart(name) end
  end
end

-- join takes up what the member holds, whatever is stored of it.
local function join()
  depart(request.member)
  for _, c in ipairs(request.held) do
    for i = 1, #c.keys do
      local k = keys[c.keys[i]]
      refill(k)
      if k.claims == 0 and not sameLimit(k, c.limits[i]) then adopt(k, c.limits[i]) end
      k.claims, k.inUse = k.claims + 1, k.inUse + 1
    end
    grants[c.id] = cmsgpack.pack(c.keys, c.costs)
    write(c.id, grants[c.id])
  end
end

-- The batch.

local function loadBatch()
  local at, names = 0, {}
  for i, name in ipairs(request.names) do names[i] = keyAt(name) end
  inParts(names, function(...)
    for _, text in ipairs(redis.call('MGET', ...)) do
      at = at + 1
      if not rawget(keys, request.names[at]) then loadKey(request.names[at], text) end
    end
  end)
  local ids, found = {'seq', 'reply'}, {}
  for _, list in ipairs({request.releases, request.refunds, request.withdrawn}) do
    for _, id in ipairs(list) do ids[#ids + 1] = id end
  end
  for _, c in ipairs(request.claims) do ids[#ids + 1] = c.id end
  inParts(ids, function(...)
    for _, text in ipairs(redis.call('HMGET', memberAt(self.name), ...)) do found[#found + 1] = text end
  end)
  for i = 3, #ids do grants[ids[i]] = grants[ids[i]] or found[i] end
  return tonumber(found[1] or 0), found[2]
end

-- placeOf says which of its keys a claim waits for: 0 for none of them, -1 for its
-- pair.
local function placeOf(c, name)
  for i = 1, #c.keys do if c.keys[i] == name then return i end end
  return name and -1 or 0
end

local function userOf(name)
  local user
  for _, other in ipairs(redis.call('ZRANGE', leases, 0, -1)) do
    if other ~= self.name and (not user or other < user) then
      local all = redis.call('HGETALL', memberAt(other))
      local claims = {}
      for _, c in pairs(members[other].waiting) do claims[#claims + 1] = c end
      for i = 1, #all, 2 do claims[#claims + 1] = tonumber(all[i]) and grant(all[i + 1]) or nil end
      for _, c in ipairs(claims) do if placeOf(c, name) > 0 then user = other end end
    end
  end
  return user
end

local function conflict()
  for i, l in ipairs(request.limits) do
    local k = keys[request.names[i]]
    local user = k.claims > 0 and not sameLimit(k, l) and userOf(k.name)
    if user then return {k.name, user, k.concurrency, k.tokens, k.per, k.burst, unpack(l)} end
  end
end

local function giveBackID(id, refund)
  if grants[id] then
    giveBack(grant(grants[id]), refund)
    grants[id], removed[#removed + 1] = false, id
  end
end

local function news()
  for _, id in ipairs(request.releases) do giveBackID(id, false) end
  for _, id in ipairs(request.refunds) do giveBackID(id, true) end
  for _, id in ipairs(request.withdrawn) do
    local c = self.waiting[id]
    if c then
      leave(c)
      self.waiting[id] = nil
      forget(c)
    end
    giveBackID(id, true) -- granted, in a reply that was lost
  end
  for _, p in ipairs(request.pauses) do pause(p.key, p.till) end
end

local function enter(c)
  local old = self.waiting[c.id]
  if old then
    leaveQueues(old)
    for i = 1, #old.keys do keys[old.keys[i]].claims = keys[old.keys[i]].claims - 1 end
    c.bypassed, c.due, c.refs = old.bypassed, old.due, old.refs
  end
  self.waiting[c.id] = c
  if c.pair and keys[c.pair].pause > 0 then report(keys[c.pair]) end
  for i = 1, #c.keys do
    local k = touch(c.keys[i])
    local l = k.asked
    if l then -- the batch's first claim on the key
      k.asked = nil
      if not sameLimit(k, l) then adopt(k, l) end
    end
    k.claims = k.claims + 1
  end
end

local function answer(c, free)
  local lane = request.lanes[c.lane]
  c.lane, c.keys, c.costs = nil, lane.keys, lane.costs
  setmetatable(c, self.claim)
  if grants[c.id] then
    return {cause = GRANTED}
  elseif now < learnUntil and #c.keys > 0 then
    return {cause = PERMIT, key = c.keys[1], at = learnUntil}
  end
  enter(c)
  local v = blocked(c)
  if v.cause == GRANTED and not free then v.cause = PERMIT end
  if v.cause == GRANTED then
    take(c)
    self.waiting[c.id] = nil
    lane.text = lane.text or cmsgpack.pack(lane.keys, lane.costs)
    grants[c.id] = lane.text
    write(c.id, lane.text)
  elseif v.key then
    wait(c, v)
  end
  return v
end

-- decide answers the claims: 0 for a grant, nothing for a claim behind a refused
-- one, and three numbers for any other.
local function decide()
  local free, refused, out = request.max, {}, {}
  for at, c in ipairs(request.claims) do
    if c.behind and refused[c.behind] then
      refused[at] = true
    else
      local v = answer(c, free > 0)
      if v.cause == GRANTED then
        free, out[#out + 1] = free - 1, 0
      else
        refused[at] = true
        local n = #out
        out[n + 1], out[n + 2], out[n + 3] = v.cause, placeOf(c, v.key), v.at
      end
    end
  end
  return out, free > 0
end

local function levels()
  local out = {}
  for _, k in ipairs(touched) do
    if k.per > 0 or k.pause > 0 then out[#out + 1] = {k.name, k.level, k.last, k.pause, aheadOf(k, self)} end
  end
  return out
end

local function sync()
  local seq, reply = loadBatch()
  if seq == request.seq then
    return cmsgpack.unpack(reply)
  elseif seq > request.seq then
    return {'stale', now, epoch, learnUntil} -- nobody waits for it any more
  end
  local clash = conflict()
  if clash then return {'conflict', now, epoch, learnUntil, clash} end
  for i, l in ipairs(request.limits) do keys[request.names[i]].asked = l end
  news()
  local verdicts, room = decide()
  local answered = {'ok', now, epoch, learnUntil, verdicts, levels()}
  wake(self, room)
  write('seq', request.seq)
  write('reply', cmsgpack.pack(answered))
  return answered
end

begin()
if request.op == 'leave' then
  depart(request.member)
  store()
  return {'ok', now, epoch, learnUntil}
end
local known = redis.call('ZSCORE', leases, request.member) and request.epoch == epoch
if not known and not request.join then return {'join', now, epoch, learnUntil} end
reap()
if request.join and redis.call('HGET', memberAt(request.member), 'seq') ~= tostring(request.seq) then
  join()
end
redis.call('ZADD', leases, now + request.ttl, request.member)
self = members[request.member]
local answered = request.op == 'beat' and {'ok', now, epoch, learnUntil} or sync()
store()
return answered
