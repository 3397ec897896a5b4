-- API keys of a file, one a line, as kaigen_keys.py reads them.
local bit = require("bit")
local file, keys, read_at = "@FILE@", {}, 0

local function current()
  local now = os.time()
  if now ~= read_at then
    read_at, keys = now, {}
    local opened = io.open(file, "r")
    if opened then
      for line in opened:lines() do
        local key = line:match("^%s*(.-)%s*$")
        if key ~= "" then keys[#keys + 1] = key end
      end
      opened:close()
    end
  end
  return keys
end

-- Takes as long for every key of the same length.
local function equal(left, right)
  if #left ~= #right then return false end
  local differs = 0
  for at = 1, #left do differs = bit.bor(differs, bit.bxor(left:byte(at), right:byte(at))) end
  return differs == 0
end

local function is_valid(given)
  local valid = false
  for _, key in ipairs(current()) do valid = equal(given, key) or valid end
  return valid
end
