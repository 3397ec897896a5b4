-- Who asks: the client of an Endpoint whose file has the key, one key a line. This comes before everything else, so that
-- a request without a key costs no memory for its body. It answers the list of models and refuses other paths, too.
local folder, keys = "@FOLDER@", "@KEYS@"
local clients, read_at = {}, 0
local asked = {@PATHS@}

-- The lines of the file are those of kaigen.compile.endpoint.access.
for line in io.lines(folder .. "/access") do
  local word, first, second = line:match("^(%S+) (%S+) ?(%S*)$")
  if word == "client" then
    clients[#clients + 1] = {name = first, rate = tonumber(second), models = {}, keys = {}}
  elseif word == "may" then
    local models = clients[#clients].models
    models[#models + 1] = second
  end
end

local function read_keys()
  local now = os.time()
  if now == read_at then return end
  read_at = now
  for _, client in ipairs(clients) do
    client.keys = keys_in(keys .. "/" .. client.name)
  end
end

local function client_of(headers)
  local given = bearer_key(headers) or headers:get("x-api-key")
  local found
  if given then
    read_keys()
    for _, client in ipairs(clients) do
      for _, key in ipairs(client.keys) do
        if equal(given, key) then found = found or client end
      end
    end
  end
  return found
end

local function text(value)
  return '"' .. value:gsub('[%c"\\]', function(c) return string.format("\\u%04x", c:byte()) end) .. '"'
end

local function entry(name)
  return '{"id":' .. text(name) .. ',"object":"model","created":0,"owned_by":"kaigen"}'
end

local function answer(handle, body)
  handle:respond({[":status"] = "200", ["content-type"] = "application/json"}, body)
end

local function decoded(path)
  return (path:gsub("%%(%x%x)", function(code) return string.char(tonumber(code, 16)) end))
end

local function list(handle, client, path)
  local wanted = path:match("^/v1/models/(.+)$")
  local entries = {}
  for _, name in ipairs(client.models) do
    if not wanted then
      entries[#entries + 1] = entry(name)
    elseif name == decoded(wanted) then
      return answer(handle, entry(name))
    end
  end
  if wanted then
    return handle:respond({[":status"] = "404"}, "The model does not exist, or this key may not use it.")
  end
  answer(handle, '{"object":"list","data":[' .. table.concat(entries, ",") .. "]}")
end

function envoy_on_request(handle)
  local headers, metadata = handle:headers(), handle:streamInfo():dynamicMetadata()
  local path, method = headers:get(":path"):match("^[^?#]*"), headers:get(":method")
  local client = client_of(headers)
  if not client then
    return handle:respond({[":status"] = "401", ["www-authenticate"] = "Bearer"}, "The API key is missing or wrong.")
  end
  metadata:set("kaigen", "client", client.name)
  metadata:set("kaigen", "retry", client.rate and tostring(math.ceil(60 / client.rate)) or "1")
  -- The key is the client's, and no engine may see it.
  headers:remove("authorization")
  headers:remove("x-api-key")
  if method == "GET" and (path == "/v1/models" or path:sub(1, 11) == "/v1/models/") then
    list(handle, client, path)
  elseif method ~= "POST" or not asked[path] then
    handle:respond({[":status"] = "404"}, "This endpoint has no such path.")
  end
end
