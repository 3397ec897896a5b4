"""One run: load, lower, compile, check, emit."""
