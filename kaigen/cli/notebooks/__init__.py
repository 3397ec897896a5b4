"""The commands of `kaigen notebook`."""
