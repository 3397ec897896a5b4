"""Compilers of kinds: each turns a spec into an app of objects, made by the builders that all kinds share."""
