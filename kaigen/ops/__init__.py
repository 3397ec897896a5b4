"""Live work on a cluster: Jobs that run now, their files, logs and volumes.

Only this package imports the packages of the extra `kaigen[cluster]`. The client is the official `kubernetes` package;
docs/architecture.md says why, with the numbers. It is used below its generated models: requests and answers are plain
mappings, because a model refuses answers that are newer or older than itself, and deletes answer with one of two kinds.
"""
