"""The ConfigMap with what was measured, written to an API server over TLS."""

from __future__ import annotations

import datetime
import ipaddress
import json
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
from kaigen_downloader.marker import Marker, StoredFile
from kaigen_downloader.progress import Display, Meter, phrase
from runs import ID, Runner, marker, until


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
        "fileNames": json.dumps([file["path"] for file in found["files"]]),
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
        done = facts.write("f", facts.data(Marker("1", {"type": "http"}, "", (), now, now, 0)), api.env)
    assert done == "created ConfigMap models/f"


NOW = "2026-11-22T10:00:00Z"


@pytest.mark.promise("Substratus", "`status.url`, `files`, `size` of a Model")
@pytest.mark.parametrize(
    ("dest", "endpoint", "url"),
    [
        ("s3://b/models/x", None, "s3://b/models/x"),
        ("s3://b/x", "http://minio:9000", "s3://b/x"),
        ("s3://b/x", "https://storage.googleapis.com", "gs://b/x"),
        ("/model/x", None, ""),
    ],
)
def test_facts_have_the_names_of_files_and_the_url_of_a_bucket(dest: str, endpoint: str | None, url: str) -> None:
    files = tuple(StoredFile(f"model-{number:03}.bin", 1, "") for number in range(200))
    found = facts.data(Marker("1", {"type": "http"}, "", files, NOW, NOW, 200), facts.url_of(dest, endpoint))
    assert (found["url"], found["files"]) == (url or None, "200")
    assert json.loads(str(found["fileNames"])) == [file.path for file in files[:100]]


def test_names_of_files_are_at_most_as_long_as_a_value_may_be() -> None:
    files = tuple(StoredFile(f"{number:03}/" + "ä" * 80, 1, "") for number in range(50))
    names = str(facts.data(Marker("1", {"type": "http"}, "", files, NOW, NOW, 1))["fileNames"])
    assert len(names) <= 4096
    assert 0 < len(json.loads(names)) < 50


def converted(folder: Path) -> None:
    """Write a folder as kaigen-convert does."""
    (folder / ".kaigen").mkdir(parents=True)
    (folder / "model.m").write_bytes(bytes(302428))
    document = {
        "schema": 1,
        "identity": ID,
        "source": {"type": "distributed-llama", "from": "huggingface", "weights": "q40", "commit": COMMIT},
        "files": [{"path": "model.m", "size": 302428, "sha256": "00"}],
        "bytes": 302428,
        "fetched": 0,
        "started": "2026-11-22T10:00:00Z",
        "finished": "2026-11-22T10:00:31Z",
        "facts": {},
    }
    (folder / ".kaigen" / "model.json").write_text(json.dumps(document))


@pytest.mark.promise("Koldun", "`status.conversionSizeBytes`, `status.conversionSizeHuman`")
def test_verify_adds_the_size_of_a_conversion_until_the_next_download(
    hub: Hub, api: Api, run: Runner, dest: Path, tmp_path: Path
) -> None:
    assert run.fetch(hub, dest, "--facts", "f", **api.env).code == 0
    of_download = dict(api.objects["f"]["data"])
    converted(tmp_path / "converted")
    verify = ("verify", "--dest", str(tmp_path / "converted"), "--identity", ID, "--facts", "f")
    assert "updated ConfigMap models/f" in run(*verify, **api.env).err
    assert api.objects["f"]["data"] == {
        **of_download,
        "conversionSizeBytes": "302428",
        "conversionSizeHuman": "295.3 KiB",
        "conversionWeights": "q40",
        "conversionSeconds": "31.000",
    }
    assert "is up to date" in run(*verify, **api.env).err
    assert run.fetch(hub, dest, "--facts", "f", **api.env).code == 0
    assert api.objects["f"]["data"] == of_download
    (tmp_path / "converted" / "model.m").unlink()
    api.calls.clear()
    assert run(*verify, **api.env).code == 1
    assert not api.calls


@pytest.mark.promise("Koldun", "Step 5, status: model download progress")
def test_progress_is_in_the_facts_until_the_download_is_complete(api: Api) -> None:
    shown = Display()
    meter = Meter("fetch", shown, 4 << 20, 2)
    with facts.reported("f", shown, api.env, every=0.02):
        meter.add(1 << 20)
        until(lambda: "f" in api.objects)
        assert str(api.objects["f"]["data"]["progress"]).startswith("fetching 25% of 4.0 MiB")
        meter.add(1 << 20)
        until(lambda: "50%" in api.objects["f"]["data"]["progress"])
    found = marker_of(4 << 20)
    facts.write("f", facts.data(found), api.env)
    assert "progress" not in api.objects["f"]["data"]
    assert phrase(meter.counts(), 1 << 20) == "fetching 50% of 4.0 MiB (2s left)"


def marker_of(size: int) -> Marker:
    """Return the marker of one file."""
    return Marker("1", {"type": "http"}, "", (StoredFile("a", size, ""),), NOW, NOW, size)


def test_progress_that_may_not_be_written_is_one_warning(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    shown = Display()
    Meter("fetch", shown, 100, 1)
    api.statuses = [403] * 5
    with facts.reported("f", shown, api.env, every=0.01):
        until(lambda: api.calls)
        until(lambda: "is not written" in capsys.readouterr().err)
    assert len(api.calls) == 1


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
