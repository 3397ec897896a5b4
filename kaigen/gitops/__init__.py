"""What kaigen writes into a repository, and how a GitOps controller finds it there."""
