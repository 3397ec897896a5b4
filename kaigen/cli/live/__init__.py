"""The commands of `kaigen job` and `egpu`, which work on a live cluster."""
