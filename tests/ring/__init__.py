"""A peer of distributed-llama for tests: the same command line, sockets and faults, without a model."""
