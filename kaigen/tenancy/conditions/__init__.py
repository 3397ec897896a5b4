"""What a value must be, each as a check of kaigen and as an expression of an admission policy."""
