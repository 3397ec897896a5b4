"""`kaigen pin`: commits and digests in place of branches and tags, written into the specs."""
