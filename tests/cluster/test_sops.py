"""What SOPS encrypted is still what SOPS decrypts, after a render."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.pipeline.run import render
from tests.cluster.flux import GIT_REPOSITORY, KUSTOMIZATION, Flux
from tests.cluster.flux import SECRET as GIT_SECRET
from tests.cluster.plane import Plane
from tests.cluster.tools.parts import locate

SECRET = """\
# The token of the team; encrypted with the rest.
apiVersion: v1
kind: Secret
metadata:
    namespace: ml
    name: hf-token
stringData:
    # made by hand
    zeta: not-a-real-token
    alpha: "two\\nlines"
    empty: ""
"""


@dataclass(frozen=True, slots=True)
class Sops:
    """SOPS with a key made for one test."""

    folder: Path
    recipient: str

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it in the test's folder."""
        env = {**os.environ, "SOPS_AGE_KEY_FILE": str(self.folder / "key.txt")}
        return subprocess.run(
            [locate()["sops"], "--disable-version-check", *arguments],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def sops(tmp_path: Path) -> Sops:
    """SOPS, in an empty folder with `specs/`."""
    (tmp_path / "specs").mkdir()
    key = tmp_path / "key.txt"
    made = subprocess.run([locate()["age-keygen"], "-o", key], capture_output=True, text=True, check=True, cwd=tmp_path)
    (recipient,) = re.findall(r"age1\w+", made.stderr)
    return Sops(tmp_path, recipient)


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_an_encrypted_secret_survives_a_render(sops: Sops, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sops.folder)
    spec = sops.folder / f"specs/hf.{ending}"
    (sops.folder / "plain.yaml").write_text(SECRET)
    encrypted = sops(
        "encrypt",
        "--age",
        sops.recipient,
        "--encrypted-regex",
        "^(data|stringData)$",
        "--output-type",
        ending,
        "plain.yaml",
    )
    assert encrypted.returncode == 0, encrypted.stderr
    spec.write_text(encrypted.stdout)
    files = render([str(spec)])
    (content,) = [data for path, data in files.items() if path.endswith(f"secret-hf-token.{ending}")]
    copy = sops.folder / f"copy.{ending}"
    copy.write_bytes(content)
    decrypted = sops("decrypt", str(copy))
    assert decrypted.returncode == 0, decrypted.stderr
    read = json.loads if ending == "json" else yaml.safe_load
    assert read(decrypted.stdout) == yaml.safe_load(SECRET)
    # The checksum is there to be broken: a reordered file is no longer what was encrypted.
    data = read(content)
    data["stringData"] = dict(sorted(data["stringData"].items()))
    other = sops.folder / "other.yaml"
    other.write_text(yaml.safe_dump(data, sort_keys=False))
    assert "MAC mismatch" in sops("decrypt", str(other)).stderr


def test_flux_decrypts_a_secret_without_a_namespace_into_that_of_its_app(
    sops: Sops, plane: Plane, flux: Flux, namespace: str
) -> None:
    (sops.folder / "plain.yaml").write_text(SECRET.replace("    namespace: ml\n", ""))
    options = ("--age", sops.recipient, "--encrypted-regex", "^(data|stringData)$")
    encrypted = sops("encrypt", *options, "plain.yaml")
    (sops.folder / "specs/hf.yaml").write_text(encrypted.stdout)
    config = {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": "Config",
        "namespace": namespace,
        "passthrough": True,
        "gitops": {
            "repository": flux.url(namespace),
            "project": namespace,
            "flux": {"interval": "5s", "secret": GIT_SECRET, "decryption": {"secret": "sops-age"}},
        },
    }
    (sops.folder / "kaigen.yaml").write_text(yaml.safe_dump(config))
    files = render((), load_config(sops.folder))
    key = (sops.folder / "key.txt").read_text()
    plane.client.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "sops-age", "namespace": flux.namespace},
            "stringData": {"age.agekey": key},
        }
    )
    flux.commit(namespace, {f"rendered/{path}": data.decode() for path, data in files.items()})
    for path, data in files.items():
        if path.startswith("_flux/bootstrap/") and not path.endswith("kustomization.yaml"):
            plane.client.apply(yaml.safe_load(data))
    flux.fetch(GIT_REPOSITORY, namespace)
    made = plane.client.wait("v1/Secret", "hf-token", namespace, bool, "decrypted", 60)
    value = base64.b64decode(made["data"]["zeta"]).decode()
    assert value == yaml.safe_load(SECRET)["stringData"]["zeta"]
    for name in (namespace, f"{namespace}.hf"):
        plane.client.delete(KUSTOMIZATION, name, flux.namespace)
        plane.client.wait_gone(KUSTOMIZATION, name, flux.namespace)
