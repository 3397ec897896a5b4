"""The ConfigMap with what was measured, written to an API server over TLS."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
import trustme
from api import OBJECTS, Api, serving
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from hub import COMMIT, Hub
from kaigen_downloader import facts
from kaigen_downloader.marker import Marker
from runs import Runner, marker


def old_authority(folder: Path) -> ssl.SSLContext:
    """Write `ca.crt`, an authority without the extensions that Python 3.13 requires, and return a server's context."""
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())

    def certificate(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        dated = x509.CertificateBuilder().not_valid_before(now - day).not_valid_after(now + day)
        return dated.subject_name(subject).issuer_name(name).public_key(public).serial_number(7)

    authority = certificate(name, ca_key.public_key()).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    server = certificate(x509.Name([]), key.public_key()).add_extension(address, critical=True)
    (folder / "ca.crt").write_bytes(authority.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM))
    pair = folder / "server.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pair.write_bytes(private + server.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    return context


@pytest.mark.promise("Koldun", "Step 1, model caching pipeline: size and checksum data")
def test_facts_are_created(hub: Hub, api: Api, run: Runner, dest: Path) -> None:
    job = {"JOB_NAME": "llama-1a2b", "JOB_UID": "6f1e", "KAIGEN_APP": "llama"}
    done = run.fetch(hub, dest, "--facts", "llama-facts", **api.env, **job)
    assert done.code == 0
    assert "created ConfigMap models/llama-facts" in done.err
    found = marker(dest)
    assert found is not None
    written = api.objects["llama-facts"]
    assert written["metadata"] == {
        "name": "llama-facts",
        "labels": {"app.kubernetes.io/managed-by": "kaigen", "app.kubernetes.io/instance": "llama"},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "llama-1a2b", "uid": "6f1e"}],
    }
    data = written["data"]
    seconds = float(data.pop("seconds"))
    assert seconds > 0
    assert int(data.pop("bytesPerSecond")) == pytest.approx(found["bytes"] / seconds, rel=0.01)
    assert data == {
        "source": "huggingface:owner/name@main",
        "commit": COMMIT,
        "files": "5",
        "bytes": str(found["bytes"]),
        "finished": found["finished"],
    }
    assert api.calls == [("GET", f"{OBJECTS}/llama-facts"), ("POST", OBJECTS)]


def test_facts_without_a_job_have_no_owner(hub: Hub, api: Api, run: Runner, dest: Path) -> None:
    assert run.fetch(hub, dest, "--facts", "f", **api.env).code == 0
    assert api.objects["f"]["metadata"] == {"name": "f", "labels": {"app.kubernetes.io/managed-by": "kaigen"}}


def test_facts_that_are_there_are_brought_up_to_date(hub: Hub, api: Api, run: Runner, dest: Path) -> None:
    api.objects["f"] = {"metadata": {"name": "f", "labels": {"team": "a"}}, "data": {"commit": "old"}}
    done = run.fetch(hub, dest, "--facts", "f", **api.env)
    assert "updated ConfigMap models/f" in done.err
    assert api.objects["f"]["data"]["commit"] == COMMIT
    assert api.objects["f"]["metadata"]["labels"]["team"] == "a"


def test_a_fetch_that_finds_all_complete_writes_facts_only_when_they_differ(
    hub: Hub, api: Api, run: Runner, dest: Path
) -> None:
    assert run.fetch(hub, dest, "--facts", "f", **api.env).code == 0
    api.calls.clear()
    done = run.fetch(hub, dest, "--facts", "f", **api.env)
    assert "ConfigMap models/f is up to date" in done.err
    assert [verb for verb, _ in api.calls] == ["GET"]
    done = run.fetch(hub, dest, "--facts", "f", JOB_NAME="next", JOB_UID="7", **api.env)
    assert "updated ConfigMap models/f" in done.err
    assert api.objects["f"]["metadata"]["ownerReferences"][0]["uid"] == "7"
    api.objects.clear()
    assert "created ConfigMap" in run.fetch(hub, dest, "--facts", "f", **api.env).err


def test_a_create_conflict_becomes_an_update(hub: Hub, api: Api, run: Runner, dest: Path) -> None:
    api.objects["f"] = {"metadata": {"name": "f"}}
    api.statuses = [404, 409]
    assert "updated ConfigMap models/f" in run.fetch(hub, dest, "--facts", "f", **api.env).err


def test_a_busy_api_server_is_asked_again(hub: Hub, api: Api, run: Runner, dest: Path) -> None:
    api.statuses = [503]
    assert "created ConfigMap models/f" in run.fetch(hub, dest, "--facts", "f", **api.env).err


@pytest.mark.parametrize(
    ("status", "said"), [([403], "answers 403 to get: not now"), ([404, 403], "answers 403 to create: not now")]
)
def test_a_refusal_is_a_warning(hub: Hub, api: Api, run: Runner, dest: Path, status: list[int], said: str) -> None:
    api.statuses = status
    done = run.fetch(hub, dest, "--facts", "f", **api.env)
    assert done.code == 0
    assert f"warning: facts not written: the API server {said}" in done.err
    assert marker(dest) is not None


def test_an_authority_of_an_older_cluster_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = ssl.create_default_context

    def strict(**options: Any) -> ssl.SSLContext:
        """The default context of Python 3.13, which the image has."""
        context = create(**options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    context = old_authority(tmp_path)
    with serving(tmp_path, context) as api:
        port = int(api.env["KUBERNETES_SERVICE_PORT"])
        with (
            pytest.raises(ssl.SSLCertVerificationError, match="verify failed"),
            closing(HTTPSConnection("127.0.0.1", port, context=strict(cafile=str(tmp_path / "ca.crt")))) as connection,
        ):
            connection.request("GET", "/")
        now = "2026-11-22T10:00:00+00:00"
        done = facts.write("f", Marker("1", {"type": "http"}, "", (), now, now, 0), api.env)
    assert done == "created ConfigMap models/f"


def test_no_cluster_is_a_warning(hub: Hub, api: Api, run: Runner, dest: Path) -> None:
    done = run.fetch(hub, dest, "--facts", "f")
    assert done.code == 0
    assert "warning: facts not written: not in a cluster" in done.err
    done = run.fetch(hub, dest, "--facts", "f", **(api.env | {"KAIGEN_SA_DIR": str(dest)}))
    assert done.code == 0
    assert "no service account token is mounted" in done.err


def test_an_api_server_of_another_authority_does_not_get_the_token(hub: Hub, api: Api, run: Runner, dest: Path) -> None:
    trustme.CA().cert_pem.write_to_path(api.mount / "ca.crt")
    done = run.fetch(hub, dest, "--facts", "f", **api.env)
    assert done.code == 0
    assert "CERTIFICATE_VERIFY_FAILED" in done.err
    assert not api.calls


def test_the_token_is_read_for_every_request(hub: Hub, api: Api, run: Runner, dest: Path) -> None:
    api.rotate = "service-account-token-2"
    assert "created ConfigMap" in run.fetch(hub, dest, "--facts", "f", **api.env).err


def test_the_token_is_never_printed(hub: Hub, api: Api, run: Runner, dest: Path) -> None:
    api.token = "service-account-token-2"
    done = run.fetch(hub, dest, "--facts", "f", **api.env)
    assert "answers 401 to get" in done.err
    assert "service-account-token" not in done.err
