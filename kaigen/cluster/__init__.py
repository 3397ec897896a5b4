"""A live cluster: the one client of its API server, and what the state of an object means.

Only this package imports the package `kubernetes`, in the modules `client`, `kubeconfig`, `execution`,
`port_forward` and `websockets`; all others work without the extra `kaigen[cluster]`. docs/architecture.md says why it
is this client, with the numbers. It is used below its generated models: requests and answers are plain mappings,
because a model refuses answers that are newer or older than itself, and deletes answer with one of two kinds.
"""
