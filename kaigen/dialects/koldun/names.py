"""Names of Koldun's API."""

GROUP = "koldun.gorizond.io"
API_VERSION = f"{GROUP}/v1"
