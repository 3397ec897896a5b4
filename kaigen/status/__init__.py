"""The state of apps in a cluster."""
