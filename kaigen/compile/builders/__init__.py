"""Parts that the kinds are built from: settings, pods, storage, acquisition, policy."""
