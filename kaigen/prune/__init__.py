"""Removal of specs whose time is over from the files of a repository."""
