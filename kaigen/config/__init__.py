"""`kaigen.yaml`: its blocks as pydantic models, and the settings of one run."""
