"""Programs that pods run from a ConfigMap, for what neither an engine nor an image of kaigen's does by itself."""
