"""The speed of kaigen, compared with its peers: see README.md in this folder."""
