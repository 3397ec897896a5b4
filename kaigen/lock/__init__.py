"""`kaigen lock`: what the moving names of specs stand for now."""
