"""Objects for Argo CD and Flux: which apps to sync, from where, in which order, and how."""
