"""Signatures with a key: in-toto statements in Sigstore bundles, as cosign and OpenSSF Model Signing write them.

`cryptography` signs and verifies. Sigstore's own client for Python has no keys of users: it asks a certificate
authority and a log on the network for every signature.
"""
