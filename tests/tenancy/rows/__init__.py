"""What is allowed and denied, by the policy that decides it."""
