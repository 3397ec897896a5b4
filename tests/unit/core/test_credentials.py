"""Texts that hold a credential, and texts that only look like it.

No credential below is real: each is put together here, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import pytest

from kaigen.core.credentials import looks_like_secret, may_contain_secret

MIXED = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5kL7nP9"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGH"
PEM = "-----BEGIN {}-----\nMIIEvQ\n-----END {}-----"

SECRETS = [
    ("hf_" + LETTERS, "a Hugging Face token"),
    ("token: hf_" + MIXED[:34] + "\n", "a Hugging Face token"),
    ("api_org_" + LETTERS, "a Hugging Face token"),
    ("AKIA" + "ABCDEFGH234567IJ", "an AWS access key ID"),
    ("ASIA" + "ABCDEFGH234567IJ", "an AWS access key ID"),
    ("aws_secret_access_key = " + MIXED[:38] + "/+", "an AWS secret access key"),
    ("AWS_SECRET_ACCESS_KEY=" + MIXED[:40], "an AWS secret access key"),
    ('"secretAccessKey": "' + MIXED[:40] + '"', "an AWS secret access key"),
    ("secret_key: " + MIXED[:40], "an AWS secret access key"),
    (PEM.format("PRIVATE KEY", "PRIVATE KEY"), "a private key"),
    (PEM.format("RSA PRIVATE KEY", "RSA PRIVATE KEY"), "a private key"),
    (PEM.format("OPENSSH PRIVATE KEY", "OPENSSH PRIVATE KEY"), "a private key"),
    (PEM.format("PGP PRIVATE KEY BLOCK", "PGP PRIVATE KEY BLOCK"), "a private key"),
    ("ghp_" + MIXED[:36], "a GitHub token"),
    ("ghs_" + MIXED[:36], "a GitHub token"),
    ("github_pat_" + MIXED[:22] + "_" + MIXED, "a GitHub token"),
    ("glpat-" + MIXED[:20], "a GitLab token"),
    ("glrt-" + MIXED[:20], "a GitLab token"),
    ("xoxb-" + "123456789012-" + MIXED[:24], "a Slack token"),
    ("xapp-1-" + MIXED[:24], "a Slack token"),
    ("https://hooks.slack.com/services/T000/B000/" + MIXED[:24], "a Slack webhook"),
    ("Bearer eyJ" + MIXED[:20] + ".eyJ" + MIXED[:20] + "." + MIXED, "a JSON Web Token"),
    ("sk-ant-api03-" + MIXED * 2, "an Anthropic key"),
    ("sk-proj-" + MIXED + "_-" + MIXED, "an OpenAI key"),
    ("sk-" + MIXED[:40] + "abcdefgh", "an API key"),
    ("nvapi-" + MIXED + MIXED[:22], "an NVIDIA key"),
    ("AIza" + MIXED[:35], "a Google API key"),
    ("AccountName=x;AccountKey=" + (MIXED * 3)[:86] + "==", "an Azure storage key"),
    ('azurestorageaccountkey: "' + (MIXED * 3)[:86] + '=="', "an Azure storage key"),
    ("AZURE_STORAGE_KEY=" + (MIXED * 3)[:86] + "==", "an Azure storage key"),
    (
        "https://a.blob.core.windows.net/b?sv=2023-11-03&sig=" + (MIXED * 2)[:40] + "%2F%2bx%3D",
        "an Azure shared access signature",
    ),
    ("dckr_pat_" + MIXED[:27], "a Docker Hub token"),
    ("npm_" + MIXED[:36], "an npm token"),
    ("pypi-AgEIcHlwaS5vcmc" + MIXED, "a PyPI token"),
    ("https://user:" + "hunter22@git.example.com/x.git", "a password in a URL"),
    ("postgres://app:" + "s3cret@db:5432/app", "a password in a URL"),
    ("redis://:" + "s3cret@redis:6379", "a password in a URL"),
]
HARMLESS = [
    "",
    "hf_hub",
    "hf_transfer",
    "hf_hub_download_with_a_long_name_of_words",
    "HF_HUB_ENABLE_HF_TRANSFER",
    "hf_" + "a" * 40,
    "my_hf_" + "downloader" * 4,
    "0123_hf_0123456789012345678901234567890123",
    "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "0123456789abcdef0123456789abcdef01234567",
    "f47ac10b-58cc-4372-a567-0e02b2c3d479",
    "meta-llama/Llama-3.3-70B-Instruct",
    "ghcr.io/example/vllm@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "registry.example.com:5000/team/image:v1",
    "https://git.example.com/platform/ai.git",
    "git@git.example.com:platform/ai.git",
    "ssh://git@git.example.com/platform/ai.git",
    "http://user@example.com:8080/x",
    "https://user:$(PASSWORD)@example.com",
    "https://user:${PASSWORD}@example.com",
    "https://user:{{ .Values.password }}@example.com",
    "https://user:<password>@example.com",
    "https://user:***@example.com",
    "https://user:password@example.com",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "AKIAlowercaseletters",
    "XAKIA" + "ABCDEFGH234567IJ",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "aws_secret_access_key = 0123456789abcdef0123456789abcdef01234567",
    "secretKeyRef: {name: hf-token, key: token}",
    "name: AWS_SECRET_ACCESS_KEY",
    "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "sk-learn-iris-classifier-with-a-long-name",
    "sk-" + "a" * 30,
    "task-" + MIXED,
    "disk-3f9a1c7b2d4e6f8a0b1c2d3e",
    "sk-proj-this-is-a-name-of-words-only",
    "sk-ant-colony-optimisation-example-words",
    "high_performance_computing",
    "glibc-2.39-with-a-very-long-suffix-of-words",
    "npm_config_registry",
    "eyJhbGciOiJIUzI1NiJ9",
    "a.eyJ.b",
    "ENC[AES256_GCM,data:p673w==,iv:YY=,tag:UQ=,type:str]",
    "AgBy3i4OJSWK+PiTySYZZA9rO43cGDEq0Wz5xQ7w1u2k" * 4,
    "nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB",
    "TOKENIZERS_PARALLELISM=false",
]


@pytest.mark.parametrize(("text", "kind"), SECRETS)
def test_the_kind_of_a_credential_is_named(text: str, kind: str) -> None:
    assert looks_like_secret(text) == kind


@pytest.mark.parametrize(("text", "kind"), SECRETS)
@pytest.mark.parametrize("around", ["{}", "'{}'", "x: {}\ny: z", "a\n{}\n", "export A={}", "[{}]", "({})"])
def test_a_credential_is_found_inside_other_text(text: str, kind: str, around: str) -> None:
    assert looks_like_secret(around.format(text)) == kind
    assert may_contain_secret(around.format(text))


@pytest.mark.parametrize("token", ["hf_" + LETTERS, "ghp_" + MIXED[:36]])
def test_a_token_is_found_with_letters_around_it(token: str) -> None:
    for text in (f"a{token}", f"my_{token}", f"{token}_old"):
        assert looks_like_secret(text) is not None


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_passes(text: str) -> None:
    assert looks_like_secret(text) is None
    assert looks_like_secret(f"image: {text}\n") is None


def test_the_fast_check_passes_ordinary_text() -> None:
    """A false alarm would search every object twice."""
    for text in (
        "ghcr.io/example/vllm@sha256:" + "0123456789abcdef" * 4,
        "https://git.example.com/platform/ai.git",
        "secretKeyRef: {name: hf-token, key: token}",
        "task-runner and disk-size with high glory",
        "meta-llama/Llama-3.3-70B-Instruct",
    ):
        assert not may_contain_secret(text)


def test_a_large_file_is_searched_quickly() -> None:
    text = "sk-a gh gl @ hf_ AKIA eyJ :// secret key " * 20_000
    assert looks_like_secret(text) is None
    assert looks_like_secret(text + "ghp_" + MIXED[:36]) == "a GitHub token"


@pytest.mark.parametrize("unit", ["a", "a://", "://a:", "secret_key", "-----BEGIN ", "sk-a", "eyJa."])
def test_a_long_text_takes_linear_time(unit: str) -> None:
    # A search that begins at every character of a run of letters would take 10^12 steps.
    text = unit * (2_000_000 // len(unit)) + " @"
    assert looks_like_secret(text) is None
