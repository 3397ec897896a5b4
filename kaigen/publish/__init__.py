"""Publishing: commits rendered trees to a deploy branch, pushes charts and manifests to an OCI registry.

`make_plan` renders everything, `Plan.publish` pushes it. Nothing here changes the working tree, the index or a branch
of the clone that it runs in.
"""
