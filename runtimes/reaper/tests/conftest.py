"""Put the package and the test helpers on the path, and give each test its own API server."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from fake_cluster import Cluster, Server, serving  # noqa: E402


@pytest.fixture
def cluster() -> Cluster:
    """An empty cluster."""
    return Cluster()


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """The certificate authority of the clusters."""
    return trustme.CA()


@pytest.fixture
def server(tmp_path: Path, cluster: Cluster, authority: trustme.CA) -> Iterator[Server]:
    """The API server of the cluster."""
    mount = tmp_path / "serviceaccount"
    mount.mkdir()
    authority.cert_pem.write_to_path(mount / "ca.crt")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with serving(cluster, mount, context) as found:
        yield found
