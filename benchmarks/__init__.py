"""How fast kaigen is, beside its peers: see README.md in this folder."""
