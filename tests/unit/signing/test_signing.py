"""Keys, bundles, and the rendered output, signed and verified. tests/cluster/test_flux.py verifies artifacts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from kaigen.cli.main import run
from kaigen.diagnostics.errors import InputError
from kaigen.signing.bundle import SignatureInvalid, sign_statement, statement_of
from kaigen.signing.keys import PASSWORD_VARIABLE, read_private_key, read_public_key
from kaigen.signing.tree import FILE_NAME
from tests.keys import write_keys

SUBJECT = [{"name": "a", "digest": {"sha256": "00"}}]


def test_the_same_statement_has_the_same_signature(tmp_path: Path) -> None:
    key = read_private_key(write_keys(tmp_path)[0])
    assert sign_statement(key, "p", SUBJECT, {"b": 1, "a": 2}) == sign_statement(key, "p", SUBJECT, {"a": 2, "b": 1})


def test_one_of_several_keys_is_enough_and_another_key_is_not(tmp_path: Path) -> None:
    ours, theirs = (write_keys(tmp_path, name) for name in ("ours", "theirs"))
    bundle = sign_statement(read_private_key(ours[0]), "p", SUBJECT, {})
    keys = [read_public_key(theirs[1]), read_public_key(ours[1])]
    assert statement_of(bundle, keys)["predicateType"] == "p"
    with pytest.raises(SignatureInvalid, match="none of the keys"):
        statement_of(bundle, keys[:1])


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"[]",
        lambda data: b"[" * 100_000,
        lambda data: data.replace(b"vnd.in-toto", b"vnd.other"),
        lambda data: data.replace(b'"sig"', b'"gis"'),
        lambda data: data.replace(b'"payload":"ey', b'"payload":"ez'),
    ],
)
def test_a_damaged_bundle_is_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    private, public = write_keys(tmp_path)
    bundle = sign_statement(read_private_key(private), "p", SUBJECT, {})
    with pytest.raises(SignatureInvalid):
        statement_of(damage(bundle), [read_public_key(public)])


def test_an_encrypted_key_needs_its_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private, _ = write_keys(tmp_path, password="correct-horse")
    monkeypatch.delenv(PASSWORD_VARIABLE, raising=False)
    with pytest.raises(InputError, match="is encrypted"):
        read_private_key(private)
    monkeypatch.setenv(PASSWORD_VARIABLE, "wrong")
    with pytest.raises(InputError, match="not a readable private key"):
        read_private_key(private)
    monkeypatch.setenv(PASSWORD_VARIABLE, "correct-horse")
    read_private_key(private)


def test_other_files_are_not_keys(tmp_path: Path) -> None:
    private, public = write_keys(tmp_path)
    other = tmp_path / "other"
    with pytest.raises(InputError, match="private key, not a public one") as error:
        read_public_key(private)
    assert error.value.diagnostics[0].code == "KG0910"
    with pytest.raises(InputError, match="not a readable private key"):
        read_private_key(public)
    with pytest.raises(InputError, match="cannot be read"):
        read_public_key(other)
    pem, private_format = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    edwards = ed25519.Ed25519PrivateKey.generate()
    other.write_bytes(edwards.private_bytes(pem, private_format, serialization.NoEncryption()))
    with pytest.raises(InputError, match="not an ECDSA key on P-256"):
        read_private_key(other)
    public_format = serialization.PublicFormat.SubjectPublicKeyInfo
    other.write_bytes(edwards.public_key().public_bytes(pem, public_format))
    with pytest.raises(InputError, match="not an ECDSA key on P-256"):
        read_public_key(other)
    other.write_text("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n")
    with pytest.raises(InputError, match="cosign's own format"):
        read_private_key(other)


def test_without_cryptography_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['cryptography'] = None; import kaigen.signing.keys"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "signatures need the package `cryptography`" in done.stderr


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a rendered tree of two environments, signed; the keys are next to it."""
    folder = tmp_path / "repository"
    for environment in ("dev", "prod"):
        (folder / "rendered" / environment).mkdir(parents=True)
        (folder / "rendered" / environment / "a.yaml").write_text("kind: ConfigMap\n")
    config = "apiVersion: kaigen.dev/v1alpha1\nkind: Config\nenvironments: {dev: {}, prod: {}}\n"
    (folder / "kaigen.yaml").write_text(config)
    monkeypatch.chdir(folder)
    private, _ = write_keys(tmp_path / "keys")
    assert run(["sign", "--key", str(private)]) == 0
    return folder


def verify() -> int:
    return run(["verify", "--key", "../keys/sign.pub"])


def test_the_rendered_output_is_verified_file_by_file(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    signature = (repository / FILE_NAME).read_bytes()
    assert run(["sign", "--key", "../keys/sign.key"]) == 0
    assert (repository / FILE_NAME).read_bytes() == signature
    assert verify() == 0
    assert "verified 2 files of rendered/dev, rendered/prod" in capsys.readouterr().err
    new = repository / "rendered" / "prod" / "evil" / "b.yaml"
    new.parent.mkdir()
    new.write_text("kind: Pod\n")
    (repository / "rendered" / "dev" / "a.yaml").write_text("kind: Secret\n")
    assert verify() == 1
    printed = capsys.readouterr().err
    assert "rendered/prod/evil/b.yaml is not signed" in printed
    assert "rendered/dev/a.yaml was changed" in printed
    assert "`kaigen sign`" in printed
    new.unlink()
    new.parent.rmdir()
    (repository / "rendered" / "dev" / "a.yaml").unlink()
    assert verify() == 1
    assert "rendered/dev/a.yaml is missing" in capsys.readouterr().err


def test_a_link_in_the_output_is_not_verified(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "rendered" / "prod" / "link").symlink_to("a.yaml")
    assert verify() == 1
    assert "is not a regular file" in capsys.readouterr().err


def test_an_environment_that_was_added_after_signing_is_not_verified(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = repository / "kaigen.yaml"
    config.write_text(config.read_text().replace("prod: {}", "prod: {}, test: {}"))
    assert verify() == 1
    assert "rendered/test is not signed" in capsys.readouterr().err


def test_another_key_or_no_signature_fails(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_keys(repository.parent / "keys", "other")
    assert run(["verify", "--key", "../keys/other.pub"]) == 1
    assert "none of the keys" in capsys.readouterr().err
    (repository / FILE_NAME).unlink()
    assert verify() == 1
    assert f"there is no {FILE_NAME}" in capsys.readouterr().err
