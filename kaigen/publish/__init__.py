"""Publishing what was rendered: commits on a deploy branch, charts and manifests in an OCI registry.

`publish_branch` is the way of a tree to a branch, `push_chart` and `push_manifests` those to a registry. Nothing
here touches the working tree, the index or a branch of the clone that it runs in.
"""
