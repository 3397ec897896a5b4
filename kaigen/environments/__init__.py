"""Changes of specs by an environment: overrides in kaigen.yaml, and pins that promotion writes."""
