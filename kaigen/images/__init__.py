"""The images of pods: build kaigen's own, and ask registries for all that a repository uses."""
