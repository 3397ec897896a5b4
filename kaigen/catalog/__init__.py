"""Facts as data: cluster profiles and GPU models, in YAML files with their sources, and typed access to them."""
