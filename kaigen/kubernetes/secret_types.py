"""Types of Secrets, and the keys that the API server requires of them."""

from __future__ import annotations

OPAQUE = "Opaque"
DOCKER_CONFIG = "kubernetes.io/dockerconfigjson"
DOCKER_CONFIG_KEY = ".dockerconfigjson"
TLS = "kubernetes.io/tls"
TLS_KEYS = ("tls.crt", "tls.key")
