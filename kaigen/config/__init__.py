"""`kaigen.yaml`: its blocks as typed models, and the settings of one run."""
