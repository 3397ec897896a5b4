"""What a cluster must have before an environment is deployed to it."""
