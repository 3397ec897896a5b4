
-- Envoy answers 401 itself, so that a request without a key starts no replica, and gets no other answer when no replica
-- or no endpoint picker runs.
function envoy_on_request(handle)
  local given = bearer_key(handle:headers())
  if not (given and is_valid(given)) then
    handle:respond(
      {[":status"] = "401", ["content-type"] = "application/json", ["www-authenticate"] = "Bearer"},
      '{"error": {"message": "Unauthorized", "type": "invalid_request_error", "code": 401}}'
    )
  end
end
