"""Files and folders of a repository, none of which is trusted."""
