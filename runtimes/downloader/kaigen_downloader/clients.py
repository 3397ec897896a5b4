"""The client of a bucket, with the credentials of variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kaigen_downloader.azure_keys import KEY_VARIABLE as AZURE_KEY
from kaigen_downloader.azure_keys import SAS_VARIABLE as AZURE_SAS
from kaigen_downloader.errors import BadInput
from kaigen_downloader.google_tokens import KEY_VARIABLE as GOOGLE_KEY
from kaigen_downloader.s3 import Address, Client
from kaigen_downloader.text import hide

if TYPE_CHECKING:
    from kaigen_downloader.pace import Pace
    from kaigen_downloader.retry import Retry

_AMAZON = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def client_of(
    where: Address,
    retry: Retry,
    env: Mapping[str, str],
    *,
    timeout: float,
    connections: int,
    pace: Pace,
    source: bool = False,
) -> Client:
    """Return the client of a bucket.

    Args:
        where: the bucket and the prefix.
        retry: for failures that pass.
        env: the variables.
        timeout: seconds that one connect, read or write may take.
        connections: how many are used at once.
        pace: the lowest speed of an answer.
        source: whether files are read: variables whose names begin with `SOURCE_` are used before others.

    Raises:
        Failure: there are no credentials, or the settings make no sense.
    """

    def given(*names: str) -> list[str]:
        own = [env.get(f"SOURCE_{name}", "").strip() for name in names] if source else []
        return own if any(own) else [env.get(name, "").strip() for name in names]

    if where.scheme == "az":
        from kaigen_downloader.azure import AzureClient

        key, sas = given(AZURE_KEY, AZURE_SAS)
        return AzureClient(where, retry, timeout=timeout, connections=connections, key=key, sas=sas, pace=pace)
    names = [f"SOURCE_{name}" for name in _AMAZON]
    key, secret = (env.get(name, "").strip() if source else "" for name in names)
    hide(secret)
    if bool(key) != bool(secret):
        raise BadInput(f"{names[0]} and {names[1]} must be set together")
    return Client(
        where,
        retry,
        timeout=timeout,
        connections=connections,
        keys=(key, secret) if key else None,
        google_key=env.get(f"SOURCE_{GOOGLE_KEY}", "").strip() if source else "",
        pace=pace,
    )
