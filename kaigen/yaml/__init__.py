"""YAML: read it with the position of every node, explain its errors, find credentials in it, write it."""
