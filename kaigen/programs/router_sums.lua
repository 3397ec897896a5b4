-- API keys by their SHA-256 checksums (FIPS 180-4).
local band, bnot, bxor, ror, shift, word = bit.band, bit.bnot, bit.bxor, bit.ror, bit.rshift, bit.tobit
local sums = {@SUMS@}

-- The constants are the first 32 bits of the fractions of roots of primes.
local roots, cubes, number = {}, {}, 2
while #cubes < 64 do
  local is_prime = true
  for divisor = 2, math.floor(math.sqrt(number)) do is_prime = is_prime and number % divisor ~= 0 end
  if is_prime then
    cubes[#cubes + 1] = word(math.floor(number ^ (1 / 3) % 1 * 2 ^ 32))
    if #roots < 8 then roots[#roots + 1] = word(math.floor(math.sqrt(number) % 1 * 2 ^ 32)) end
  end
  number = number + 1
end

local function add_block(state, text, at)
  local w = {}
  for i = 1, 16 do
    local a, b, c, d = text:byte(at + 4 * i - 4, at + 4 * i - 1)
    w[i] = word(((a * 256 + b) * 256 + c) * 256 + d)
  end
  for i = 17, 64 do
    local x, y = w[i - 15], w[i - 2]
    local s0, s1 = bxor(ror(x, 7), ror(x, 18), shift(x, 3)), bxor(ror(y, 17), ror(y, 19), shift(y, 10))
    w[i] = word(w[i - 16] + s0 + w[i - 7] + s1)
  end
  local a, b, c, d, e, f, g, h = unpack(state)
  for i = 1, 64 do
    local chosen, most = bxor(band(e, f), band(bnot(e), g)), bxor(band(a, b), band(a, c), band(b, c))
    local one = word(h + bxor(ror(e, 6), ror(e, 11), ror(e, 25)) + chosen + cubes[i] + w[i])
    local two = bxor(ror(a, 2), ror(a, 13), ror(a, 22)) + most
    a, b, c, d, e, f, g, h = word(one + two), a, b, c, word(d + one), e, f, g
  end
  for i, value in ipairs({a, b, c, d, e, f, g, h}) do state[i] = word(state[i] + value) end
end

local function sha256(text)
  local bits, state, parts = #text * 8, {unpack(roots)}, {}
  local length = string.char(shift(bits, 24), band(shift(bits, 16), 255), band(shift(bits, 8), 255), band(bits, 255))
  text = text .. "\128" .. ("\0"):rep((55 - #text) % 64 + 4) .. length
  for at = 1, #text, 64 do add_block(state, text, at) end
  for i, value in ipairs(state) do parts[i] = bit.tohex(value) end
  return table.concat(parts)
end

local function is_valid(given)
  return sums[sha256(given)] == true
end
