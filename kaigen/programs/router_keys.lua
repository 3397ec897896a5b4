-- API keys of a file, which is read again every second.
local file, keys, read_at = "@FILE@", {}, 0

local function current()
  local now = os.time()
  if now ~= read_at then read_at, keys = now, keys_in(file) end
  return keys
end

local function is_valid(given)
  local valid = false
  for _, key in ipairs(current()) do valid = equal(given, key) or valid end
  return valid
end
