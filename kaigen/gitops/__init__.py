"""What Argo CD and Flux read: objects that tell them which apps to sync from where, in which order, how."""
