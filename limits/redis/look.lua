-- What is stored of a namespace, for those who only look: {now, keys, members}. The
-- arguments are where keys are stored; step.lua says how.

local space = KEYS[1]
local time = redis.call('TIME')
local epoch = tonumber(redis.call('HGET', space, 'epoch') or 0)

local keys = {}
for _, at in ipairs(ARGV) do
  local text = redis.call('GET', at)
  if text then
    local f = cmsgpack.unpack(text)
    local level = f[1] == epoch and f[8] or 0
    keys[#keys + 1] = {string.sub(at, #space + 6), f[2], f[3], f[4], f[5], level, f[9], f[10]}
  end
end

local members = {}
for _, name in ipairs(redis.call('ZRANGE', space .. ':leases', 0, -1)) do
  local all, claims = redis.call('HGETALL', space .. ':member:' .. name), {}
  for i = 1, #all, 2 do
    if tonumber(all[i]) then
      local names = cmsgpack.unpack(all[i + 1])
      claims[#claims + 1] = {tonumber(all[i]), 1, names}
    elseif all[i] == 'waiting' then
      for id, c in pairs(cmsgpack.unpack(all[i + 1])) do
        claims[#claims + 1] = {id, 0, c.keys}
      end
    end
  end
  members[#members + 1] = {name, claims}
end
return {time[1] * 1000000 + time[2], keys, members}
