"""Releases and signatures, with programs that the other tests do without: GnuPG and OpenSSL."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from kaigen.images.attest import PROVENANCE
from kaigen.signing.bundle import sign_statement, statement_of
from kaigen.signing.keys import read_private_key, read_public_key
from tests.cluster.tools import debian
from tests.keys import write_keys
from tests.tools import helm
from tools import release

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the newest commit."""
    output = tmp_path_factory.mktemp("release") / "dist"
    release.build("HEAD", output)
    return output


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_a_clean_clone_builds_the_same_bytes(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, clone], check=True)
    for path in clone.rglob("*.py"):
        os.utime(path, (0, 0))
    (clone / "kaigen" / "uncommitted.py").write_text("not released")
    monkeypatch.setattr(release, "ROOT", clone)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    before = os.umask(0o077)
    try:
        release.build("HEAD", tmp_path / "dist")
    finally:
        os.umask(before)
    assert contents(tmp_path / "dist") == contents(built)


def test_the_provenance_names_the_commit_and_every_file(built: Path) -> None:
    statement = json.loads((built / "provenance.intoto.json").read_bytes())
    subjects = {each["name"]: each["digest"]["sha256"] for each in statement["subject"]}
    files = contents(built)
    del files["provenance.intoto.json"]
    assert subjects == files
    assert len([name for name in files if name.endswith((".whl", ".tar.gz", ".tgz"))]) == 3
    origin = statement["predicate"]["buildDefinition"]["resolvedDependencies"][0]
    assert origin["digest"] == {"gitCommit": release.git("rev-parse", "HEAD")}


def test_bills_of_materials_list_every_locked_package(built: Path) -> None:
    bills = {path.name.rpartition("-")[0]: path for path in built.glob("*.cdx.json")}
    images = {path.parent.name for path in ROOT.glob("runtimes/*/Dockerfile")}
    assert set(bills) == {"kaigen"} | images
    for name, path in bills.items():
        problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(path.read_text())
        assert problem is None, problem
        lock = ROOT / "requirements" / "base.txt"
        lock = lock if name == "kaigen" else ROOT / "runtimes" / name / "requirements.txt"
        text = release.git("show", f"HEAD:{lock.relative_to(ROOT)}") if lock.exists() else ""
        found = json.loads(path.read_bytes())["components"]
        assert [each["name"] for each in found] == re.findall(r"^([a-z0-9][^=\s]*)==", text, re.MULTILINE)
        hashes = [each["content"] for component in found for each in component["hashes"]]
        assert hashes == re.findall("sha256:([0-9a-f]{64})", text)


def test_wheel_sdist_and_chart_are_usable(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "kaigen/catalog/images.yaml" in archive.namelist()
        assert not [name for name in archive.namelist() if name.endswith((".pyc", "uncommitted.py"))]
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as content:
        assert any(name.endswith("/pyproject.toml") for name in content.getnames())
    (chart,) = built.glob("*.tgz")
    done = subprocess.run([helm(), "template", chart], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "kind: Deployment" in done.stdout


def test_the_provenance_can_be_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "_distributions", lambda tree, output, seconds: None)
    private, public = write_keys(tmp_path / "keys")
    release.build("HEAD", tmp_path / "dist", private)
    bundle = (tmp_path / "dist" / "provenance.sigstore.json").read_bytes()
    statement = statement_of(bundle, [read_public_key(public)])
    assert statement["predicateType"] == PROVENANCE
    assert len(statement["subject"]) == len(list((tmp_path / "dist").iterdir())) - 1
    with pytest.raises(SystemExit, match="is not empty"):
        release.build("HEAD", tmp_path / "dist")


def test_helm_verifies_the_chart_and_refuses_a_changed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "_distributions", lambda tree, output, seconds: None)
    debian.install("gpg")
    home = tempfile.mkdtemp()  # The names of sockets must be short.
    monkeypatch.setenv("GNUPGHOME", home)
    make = ["--batch", "--passphrase", "", "--quick-generate-key", "Releases <r@example.com>", "rsa2048", "sign"]
    try:
        subprocess.run(["gpg", *make], check=True, capture_output=True)
        release.build("HEAD", tmp_path / "dist", gpg_key="r@example.com")
        keyring = tmp_path / "keyring.gpg"
        subprocess.run(["gpg", "--output", keyring, "--export", "r@example.com"], check=True, capture_output=True)
    finally:
        subprocess.run(["gpgconf", "--kill", "gpg-agent"], check=False, capture_output=True)
        shutil.rmtree(home, ignore_errors=True)
    (chart,) = (tmp_path / "dist").glob("*.tgz")

    def verify() -> subprocess.CompletedProcess[str]:
        return subprocess.run([helm(), "verify", "--keyring", keyring, chart], capture_output=True, text=True)

    done = verify()
    assert done.returncode == 0, done.stderr
    assert "Releases <r@example.com>" in done.stdout + done.stderr
    chart.write_bytes(chart.read_bytes() + b"\0")
    assert "sha256 sum does not match" in verify().stderr


def openssl(*arguments: str | Path) -> bytes:
    done = subprocess.run(["openssl", *arguments], capture_output=True, check=True)
    return done.stdout


def test_keys_of_openssl_work_and_openssl_verifies_the_signature(tmp_path: Path) -> None:
    debian.install("openssl")
    private, public = tmp_path / "sign.key", tmp_path / "sign.pub"
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", private)
    openssl("pkey", "-in", private, "-pubout", "-out", public)
    subject = [{"name": "a", "digest": {"sha256": "00"}}]
    bundle = sign_statement(read_private_key(private), "https://example.com/p", subject, {})
    statement = statement_of(bundle, [read_public_key(public)])
    assert statement["subject"] == subject
    envelope = json.loads(bundle)["dsseEnvelope"]
    payload = base64.b64decode(envelope["payload"])
    (tmp_path / "content").write_bytes(b"DSSEv1 28 application/vnd.in-toto+json %d %s" % (len(payload), payload))
    (tmp_path / "signature").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    options = ("-verify", public, "-signature", tmp_path / "signature", tmp_path / "content")
    assert b"Verified OK" in openssl("dgst", "-sha256", *options)
