"""Foreign APIs that kaigen reads unchanged and lowers to its own kinds: one module a system."""
