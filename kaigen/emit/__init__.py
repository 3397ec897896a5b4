"""Apps to bytes: manifests, charts, and the YAML both are written in."""
