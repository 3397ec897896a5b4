"""Gates: Jobs that judge a Topology, their reports, and whether a promotion may follow."""
