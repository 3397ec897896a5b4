"""`kaigen diff` says that a syncer decrypts what it did not decrypt before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.security.hostile import CONFIG, Repository

TOKEN = (Path(__file__).parents[1] / "secrets/data/hf-token.yaml").read_text(encoding="utf-8")
FLUX = CONFIG + "gitops: {{repository: 'https://example.com/x.git', flux: {{interval: 5m{}}}}}\n"
NEW = "decryption is new: Flux decrypts Secrets of this folder that SOPS encrypted, with "


def danger_text(repository: Repository) -> str:
    return " ".join(repository.kaigen("diff", "--base", "HEAD").out.split())


@pytest.mark.parametrize(
    ("decryption", "key"),
    [
        (", decryption: {secret: sops-age}", "the key in Secret sops-age"),
        (", decryption: {}", "the cloud identity of its controller"),
    ],
)
def test_the_first_encrypted_secret_is_a_danger_that_names_decryption(
    repository: Repository, decryption: str, key: str
) -> None:
    repository.write({"kaigen.yaml": FLUX.format(decryption)})
    assert repository.kaigen("render").code == 0
    repository.commit()
    repository.write({"specs/token.yaml": TOKEN})
    assert NEW + key in danger_text(repository)
    assert repository.kaigen("render").code == 0
    repository.commit()
    repository.write({"specs/other.yaml": TOKEN.replace("name: hf-token", "name: other")})
    assert NEW not in danger_text(repository)


def test_another_key_is_new(repository: Repository) -> None:
    repository.write({"kaigen.yaml": FLUX.format(", decryption: {secret: a}"), "specs/token.yaml": TOKEN})
    assert repository.kaigen("render").code == 0
    repository.commit()
    repository.write({"kaigen.yaml": FLUX.format(", decryption: {secret: b}")})
    repository.write({"specs/other.yaml": TOKEN.replace("name: hf-token", "name: other")})
    assert f"{NEW}the key in Secret b" in danger_text(repository)


def test_without_encrypted_secrets_nothing_is_decrypted(repository: Repository) -> None:
    repository.write({"kaigen.yaml": FLUX.format("")})
    assert NEW not in danger_text(repository)
