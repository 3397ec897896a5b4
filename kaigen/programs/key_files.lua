-- Keys of a file, one a line, as kaigen_keys.py reads them, and how two are compared.
local bit = require("bit")

local function keys_in(file)
  local found, opened = {}, io.open(file, "r")
  if opened then
    for line in opened:lines() do
      local key = line:match("^%s*(.-)%s*$")
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

