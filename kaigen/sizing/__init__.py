"""Sizing: how much GPU memory a model needs, and on how many GPUs and nodes it runs. Arithmetic without I/O."""
