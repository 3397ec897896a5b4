"""Facts as data, with their sources: model presets, GPUs, instance types, cluster profiles; and typed access to them.

Small tables that people read are YAML; the large ones are JSON, a line or a few an entry, since they are read in the
path of a render. `schemas/` has a JSON Schema of each of those, with what every field means.
"""
