"""Git, through the `git` program: reading a repository, and publishing to a remote."""
