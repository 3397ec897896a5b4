-- Which Topology answers: the one that serves the model that the body names, if the client may use it.
local folder, keys = "@FOLDER@", "@KEYS@"
local backends, allowed, guarded, read_at = {}, {}, {}, {}

for line in io.lines(folder .. "/access") do
  local word, first, second = line:match("^(%S+) (%S+) ?(%S*)$")
  if word == "model" then
    backends[first] = second
  elseif word == "client" then
    allowed[first] = {}
  elseif word == "may" then
    allowed[first][second] = true
  elseif word == "guarded" then
    guarded[first] = ""
  end
end

-- The first key of the file: engines accept each line of theirs.
local function key_of(backend)
  local now = os.time()
  if now ~= read_at[backend] then
    read_at[backend] = now
    guarded[backend] = keys_in(keys .. "/" .. backend)[1] or guarded[backend]
  end
  return guarded[backend]
end

function envoy_on_request(handle)
  local metadata = handle:streamInfo():dynamicMetadata()
  local client = metadata:get("kaigen")["client"]
  local model = (metadata:get("kaigen.body") or {})["model"]
  if type(model) ~= "string" then
    return handle:respond({[":status"] = "400"}, "The body must be a JSON object with `model`, as application/json.")
  end
  local backend = backends[model]
  if not backend then
    return handle:respond({[":status"] = "404"}, "The model does not exist.")
  end
  metadata:set("kaigen", "model", model)
  if not allowed[client][model] then
    return handle:respond({[":status"] = "403"}, "This key may not use the model.")
  end
  metadata:set("kaigen", "backend", backend)
  if guarded[backend] then
    handle:headers():replace("authorization", "Bearer " .. key_of(backend))
  end
  handle:clearRouteCache()
end
