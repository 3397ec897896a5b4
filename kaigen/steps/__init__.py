"""The steps of `kaigen.pipeline`, a module each."""
