"""The parts of a Topology: weights, the engine's command line, pods, and what holds them together."""
