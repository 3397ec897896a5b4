"""Credentials and unencrypted Secrets in documents are reported with their place and never shown."""

from __future__ import annotations

import pytest

from kaigen.core.credentials import redact
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.yaml.document import parse
from kaigen.yaml.document_secrets import find_secrets, find_secrets_in_comments
from kaigen.yaml.sources import Source
from tests.unit.yaml.texts import SPEC, read

TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gH3j"
OTHER = "hf_" + "zZ9yY8xX7wW6vV5uU4tT3sS2rR1qQ0pP9o"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "qwertyuiop"


def secrets(text: str) -> list[Diagnostic]:
    (document,), found = read(text)
    assert found == []
    return find_secrets(document)


@pytest.mark.parametrize(
    ("text", "path", "place"),
    [
        (f"a:\n  token: {TOKEN}\n", "a.token", "2:10"),
        (f'a:\n  - "{TOKEN}"\n', "a[0]", "2:5"),
        (f"{TOKEN}: 1\n", redact(TOKEN), "1:1"),
        (f"command: [curl, -H, 'Authorization: Bearer {TOKEN}']\n", "command[2]", "1:21"),
        (f"script: |\n  export HF_TOKEN={TOKEN}\n", "script", "1:9"),
        ("url: https://me:s3cr3tpass@example.com/x\n", "url", "1:6"),
        (f"AWS_SECRET_ACCESS_KEY: {AWS_SECRET}\n", "AWS_SECRET_ACCESS_KEY", "1:24"),
        (f"env:\n- name: AWS_SECRET_ACCESS_KEY\n  value: {AWS_SECRET}\n", "env[0].value", "3:10"),
        ('a: "hf_\\x61B3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gH3j"\n', "a", "1:4"),
        (f"{TOKEN}\n", "", "1:1"),
        ("k: |\n  -----BEGIN RSA PRIVATE KEY-----\n  MIIEow\n", "k", "1:4"),
    ],
)
def test_a_credential_is_reported_at_its_key_or_value(text: str, path: str, place: str) -> None:
    (found,) = secrets(text)
    assert found.mark is not None
    assert (found.code, found.path, f"{found.mark.line}:{found.mark.column}") == ("KG0150", path, place)
    assert found.message.startswith("this looks like ")
    shown = found.message + found.hint + found.mark.text + found.path
    for secret in (TOKEN, "s3cr3tpass", AWS_SECRET, "B3dE5gH7jK9mN1pQ3"):
        assert secret not in shown


def test_the_excerpt_keeps_its_columns() -> None:
    line = f"env: {{A: {TOKEN}, B: {OTHER}, C: plain}}"
    first, second = secrets(line + "\n")
    assert first.mark is not None
    assert second.mark is not None
    assert first.mark.text == second.mark.text
    assert len(first.mark.text) == len(line)
    assert first.mark.text.endswith(", C: plain}")
    assert TOKEN[6:20] not in first.mark.text
    assert OTHER[6:20] not in first.mark.text
    assert second.mark.column == line.index(OTHER) + 1


def test_a_spec_without_credentials_passes() -> None:
    assert secrets(SPEC) == []
    assert secrets('tokenSecret: hf-token\nrevision: 0123456789abcdef0123456789abcdef01234567\nx: "\\u00e9"\n') == []


def test_a_credential_under_an_alias_is_reported_once() -> None:
    assert len(secrets(f"a: &t [{TOKEN}]\nb: *t\nc: {{d: *t}}\n")) == 1


CIPHER = "ENC[AES256_GCM,data:p673w+a=,iv:I9gXNi38kYQ=,tag:LsUkxFELB0Q=,type:str]"
SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: hf}
stringData:
  token: something
data: {password: c2VjcmV0, more: eA==}
"""


def test_a_secret_with_values_is_rejected() -> None:
    first, second = secrets(SECRET)
    assert [(found.code, found.path, str(found.mark)) for found in (first, second)] == [
        ("KG0151", "data", "a.yaml:6:1"),
        ("KG0151", "stringData", "a.yaml:4:1"),
    ]
    assert first.mark is not None
    assert first.mark.text == "data: {" + "…" * 8 + ": " + "…" * 8 + ", …………: …………}"


def test_a_secret_inside_another_object_is_rejected() -> None:
    (found,) = secrets("kind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  data: {a: Yg==}\n")
    assert (found.code, found.path, str(found.mark)) == ("KG0151", "items[0].data", "a.yaml:5:3")


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Secret\n",
        "apiVersion: v1\nkind: Secret\ndata: {}\n",
        "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\ndata: {a: b}\n",
        f"apiVersion: v1\nkind: Secret\ndata: {{a: '{CIPHER}', b: ''}}\nsops: {{mac: '{CIPHER}'}}\n",
        "kind: Secret\nname: data\n",
    ],
)
def test_a_secret_without_readable_values_passes(text: str) -> None:
    assert secrets(text) == []


def test_a_value_that_sops_did_not_encrypt_is_rejected_at_its_key() -> None:
    text = f"apiVersion: v1\nkind: Secret\ndata:\n  a: '{CIPHER}'\n  b: c2VjcmV0\nsops: {{mac: '{CIPHER}'}}\n"
    (found,) = secrets(text)
    assert (found.code, found.message, str(found.mark), found.path) == (
        "KG0152",
        "SOPS did not encrypt the value of `b`",
        "a.yaml:5:3",
        "data.b",
    )
    assert found.mark is not None
    assert found.mark.text == "  b: " + "…" * len("c2VjcmV0")


@pytest.mark.parametrize("value", ["ENC[hunter2]", "ENC[AES256_GCM,data:hunter2]", f"x{CIPHER}"])
def test_text_that_only_looks_encrypted_is_rejected(value: str) -> None:
    text = f"apiVersion: v1\nkind: Secret\ndata: {{a: '{value}'}}\nsops: {{mac: '{CIPHER}'}}\n"
    assert [found.code for found in secrets(text)] == ["KG0152"]


def test_a_sops_secret_without_checksum_is_rejected() -> None:
    for block in ("sops: {version: 3.13.3}", "sops: {mac: x}", "sops: yes-please"):
        (found,) = secrets(f"apiVersion: v1\nkind: Secret\ndata: {{a: '{CIPHER}'}}\n{block}\n")
        assert (found.code, found.message) == ("KG0152", "`sops` has no `mac`, so SOPS cannot decrypt this Secret")


def test_a_file_that_sops_encrypted_as_a_whole_is_rejected() -> None:
    (found,) = secrets(f"apiVersion: {CIPHER}\nkind: {CIPHER}\nsops: {{mac: '{CIPHER}'}}\n")
    assert (found.code, found.path, str(found.mark)) == ("KG0152", "apiVersion", "a.yaml:1:13")


def test_redaction_keeps_the_length_and_all_other_text() -> None:
    text = f"before {TOKEN}, 'after'"
    assert len(redact(text)) == len(text)
    assert redact(text).startswith("before hf_…")
    assert redact(text).endswith("j, 'after'")
    assert redact("nothing to see") == "nothing to see"


def test_redaction_finds_a_key_after_its_name() -> None:
    assert AWS_SECRET not in redact(f"aws_secret_access_key: {AWS_SECRET}")
    assert "MIIEow" not in redact("-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n")


def in_comments(text: str) -> list[str]:
    source = Source("a.yaml", text)
    marks = [found.mark for found in find_secrets_in_comments(source, parse(source, Diagnostics()))]
    assert all(mark and TOKEN not in mark.text for mark in marks)
    return [f"{mark.line}:{mark.column}+{mark.length}" for mark in marks if mark]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"# {TOKEN}\na: 1\n", "1:3+37"),
        (f"#{TOKEN}\na: 1\n", "1:2+37"),
        (f"a: b # {TOKEN}\n", "1:8+37"),
        (f"a: 'b # c' # {TOKEN}\n", "1:14+37"),
        (f"a: |\n  # b\n# {TOKEN}\nc: d\n", "3:3+37"),
        (f"a: 1\n---\n# {TOKEN}\n---\nb: 1\n", "3:3+37"),
        (f"a: [\n  b, # {TOKEN}\n", "2:8+37"),
        (f"\ufeffa: b # '{TOKEN}', mine\r\nc: d\r\n", "1:9+37"),
        (f"# only comments {TOKEN}\n", "1:17+37"),
        (f"a: 1 # aws_secret_access_key: {AWS_SECRET}\n", "1:7+64"),
    ],
)
def test_a_credential_in_a_comment_is_reported(text: str, place: str) -> None:
    assert in_comments(text) == [place]


@pytest.mark.parametrize(
    "text",
    [
        f"a: 'b # {TOKEN}'\n",
        f"a: |\n  # {TOKEN}\n",
        f"a: b#{TOKEN}\n",
        f'"a # {TOKEN}": 1\n',
        "a: 1 # the token is hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
        "# a key, a secret and nothing more\n",
    ],
)
def test_a_hash_sign_inside_a_value_starts_no_comment(text: str) -> None:
    assert in_comments(text) == []
