"""What the GPUs of a repository cost."""
