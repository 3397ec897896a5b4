"""Files that `kaigen init` starts a repository with."""
