-- API keys: that of a request, those of a file, and how two are compared. Clients without a key write the headers of
-- requests, so each pattern takes one pass: `(.-)%s*$` takes the square of a run of blanks, and one request would keep a
-- thread of Envoy busy for half a minute.
local bit = require("bit")

local function trimmed(text)
  local from = text:match("^%s*()")
  return from > #text and "" or text:match(".*%S", from)
end

local function bearer_key(headers)
  local scheme, rest = (headers:get("authorization") or ""):match("^(%S+)%s(.*)$")
  if scheme and scheme:lower() == "bearer" then return trimmed(rest) end
end

-- One a line, as kaigen_keys.py reads them.
local function keys_in(file)
  local found, opened = {}, io.open(file, "r")
  if opened then
    for line in opened:lines() do
      local key = trimmed(line)
      if key ~= "" then found[#found + 1] = key end
    end
    opened:close()
  end
  return found
end

-- Takes as long for every key of the same length.
local function equal(left, right)
  if #left ~= #right then return false end
  local differs = 0
  for at = 1, #left do differs = bit.bor(differs, bit.bxor(left:byte(at), right:byte(at))) end
  return differs == 0
end

