-- API keys of a file, one a line, as kaigen_keys.py reads them. Envoy answers 401 before it asks the endpoint picker, so
-- that a request without a key starts no replica, and gets no other answer when the picker is down.
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

function envoy_on_request(handle)
  local scheme, given = (handle:headers():get("authorization") or ""):match("^(%S+)%s+(.-)%s*$")
  local valid = false
  if scheme and scheme:lower() == "bearer" then
    for _, key in ipairs(current()) do valid = equal(given, key) or valid end
  end
  if not valid then
    handle:respond(
      {[":status"] = "401", ["content-type"] = "application/json", ["www-authenticate"] = "Bearer"},
      '{"error": {"message": "Unauthorized", "type": "invalid_request_error", "code": 401}}'
    )
  end
end
