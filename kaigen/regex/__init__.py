"""Regular expressions in linear time, for patterns that users write."""
