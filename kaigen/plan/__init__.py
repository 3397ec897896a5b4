"""Plans of specs: on which GPUs their models run."""
