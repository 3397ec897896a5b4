"""YAML with the position of every node: reading it, explaining what is wrong with it, writing it."""
