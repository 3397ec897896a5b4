"""KAITO, the Kubernetes AI Toolchain Operator (`kaito.sh`): a module a kind, and the parts that they share.

What it means is kept; what it ignores is honoured, or told with its line. Facts about its API are of v0.12.0 (commit
056b8280) and of the commit before v0.1.0 (27fa335a), here called its first version.
"""
