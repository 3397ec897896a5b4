"""Tokens of Microsoft Entra for Azure's storage: of a pod's workload identity.

The webhook of Azure Workload Identity sets the variables in pods with the label `azure.workload.identity/use: "true"`,
and mounts the file, which kubelet replaces before it expires (source: Azure Workload Identity 1.5, mutating admission
webhook; Microsoft identity platform, client credentials with a federated credential).
"""

from __future__ import annotations

import os
import urllib.request
from urllib.parse import quote, urlencode

from kaigen_downloader.errors import BadInput, Refused
from kaigen_downloader.text import hide
from kaigen_downloader.tokens import Answer, Stay, Tokens, answer, is_safe

_VARIABLES = ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE")
_AUTHORITY = "https://login.microsoftonline.com/"
_SCOPE = "https://storage.azure.com/.default"
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_LONGEST_FILE = 64 << 10


def tokens() -> Tokens:
    """Return the tokens of the pod's workload identity.

    Raises:
        Refused: the pod has none.
        BadInput: a token would be sent without TLS.
    """
    client, tenant, path = (os.environ.get(name, "").strip() for name in _VARIABLES)
    missing = [name for name in _VARIABLES if not os.environ.get(name, "").strip()]
    if missing:
        raise Refused(
            f"no credentials found: {', '.join(missing)} not set. Give the service account a workload identity, or set "
            "AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN"
        )
    authority = os.environ.get("AZURE_AUTHORITY_HOST", "").strip() or _AUTHORITY
    if not is_safe(authority):
        raise BadInput(f"AZURE_AUTHORITY_HOST: {authority} has no TLS, and would get a token of the service account")
    url = f"{authority.rstrip('/')}/{quote(tenant, safe='')}/oauth2/v2.0/token"

    def ask() -> Answer:
        form = {
            "grant_type": "client_credentials",
            "client_id": client,
            "scope": _SCOPE,
            "client_assertion_type": _ASSERTION,
            "client_assertion": _assertion(path),
        }
        return answer(urllib.request.build_opener(Stay), urllib.request.Request(url, urlencode(form).encode()), url)

    return Tokens(ask)


def _assertion(path: str) -> str:
    """Return the token of the service account. The file is read each time, since kubelet replaces it."""
    try:
        with open(path, encoding="ascii") as file:
            text = file.read(_LONGEST_FILE).strip()
    except (OSError, ValueError) as error:
        raise Refused(f"no credentials: AZURE_FEDERATED_TOKEN_FILE cannot be read: {error}") from None
    hide(text)
    return text
