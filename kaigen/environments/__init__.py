"""What an environment changes in specs: overrides of kaigen.yaml, and the pins that promotion writes."""
