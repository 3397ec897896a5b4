"""Credentials are found where they stand, and never shown."""

from __future__ import annotations

import pytest

from kaigen.load.diagnostics import Diagnostic
from kaigen.load.secrets import find_secrets, redact
from tests.unit.load.texts import SPEC, read

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
def test_a_credential_is_found_where_it_stands(text: str, path: str, place: str) -> None:
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


def test_a_spec_without_credentials_has_none() -> None:
    assert secrets(SPEC) == []
    assert (
        secrets('tokenSecret: hf-token\nrevision: 0123456789abcdef0123456789abcdef01234567\nx: "\\u00e9"\n')
        == []
    )


def test_an_alias_is_told_once() -> None:
    assert len(secrets(f"a: &t [{TOKEN}]\nb: *t\nc: {{d: *t}}\n")) == 1


SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: hf}
stringData:
  token: something
data: {password: c2VjcmV0, more: eA==}
"""


def test_a_secret_object_with_content_is_refused() -> None:
    first, second = secrets(SECRET)
    assert [(found.code, found.path, str(found.mark)) for found in (first, second)] == [
        ("KG0151", "data", "a.yaml:6:1"),
        ("KG0151", "stringData", "a.yaml:4:1"),
    ]
    assert first.mark is not None
    assert first.mark.text == "data: {" + "…" * 8 + ": " + "…" * 8 + ", …………: …………}"


def test_a_secret_object_inside_another_is_refused() -> None:
    (found,) = secrets("kind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  data: {a: Yg==}\n")
    assert (found.code, found.path, str(found.mark)) == ("KG0151", "items[0].data", "a.yaml:5:3")


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Secret\n",
        "apiVersion: v1\nkind: Secret\ndata: {}\n",
        "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\ndata: {a: b}\n",
        "apiVersion: v1\nkind: Secret\ndata: {a: 'ENC[AES256_GCM,data:x]'}\nsops: {mac: x}\n",
        "kind: Secret\nname: data\n",
    ],
)
def test_a_secret_without_readable_content_is_none(text: str) -> None:
    assert secrets(text) == []


def test_a_secret_that_sops_left_partly_open_is_refused() -> None:
    text = "apiVersion: v1\nkind: Secret\ndata: {a: 'ENC[AES256_GCM,data:x]', b: Yg==}\nsops: {mac: x}\n"
    assert [found.code for found in secrets(text)] == ["KG0151"]


def test_redaction_keeps_length_and_everything_else() -> None:
    text = f"before {TOKEN}, 'after'"
    assert len(redact(text)) == len(text)
    assert redact(text).startswith("before hf_…")
    assert redact(text).endswith("j, 'after'")
    assert redact("nothing to see") == "nothing to see"


def test_redaction_sees_a_key_beside_its_name() -> None:
    assert AWS_SECRET not in redact(f"aws_secret_access_key: {AWS_SECRET}")
    assert "MIIEow" not in redact("-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n")
