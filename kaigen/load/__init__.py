"""From text to documents: YAML with the position of every node, and what may be wrong with it."""
