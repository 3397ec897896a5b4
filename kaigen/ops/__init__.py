"""Live work on a cluster: Jobs that run now, their files, logs and volumes, and Notebooks."""
