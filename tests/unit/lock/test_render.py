"""What is rendered from a lock, without a network, and what the downloader makes of it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

import pytest

from runtimes.downloader.tests.hub import Hub, Stored
from tests import plain_yaml
from tests.unit.lock.conftest import CONFIG, DIGEST, WEIGHTS, Repository, model, model_files, safetensors

PACKAGE = Path(__file__).parents[3] / "runtimes" / "downloader"

TOPOLOGY = (
    """\
---
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat}
spec:
  model: tuned
  image: example.com/acme/vllm:0.11.0@sha256:"""
    + "ab" * 32
    + """
  resources: {instanceType: g6.12xlarge}
"""
)


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Cuts the network: any socket is an error."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a socket is opened")

    def cut() -> None:
        for name in ("socket", "create_connection", "getaddrinfo"):
            monkeypatch.setattr(socket, name, refuse)

    return cut


def objects(repository: Repository, kind: str) -> list[dict[str, Any]]:
    """Return the rendered objects of a kind."""
    files = sorted((repository.root / "rendered").rglob("manifests/*.yaml"))
    found = [item for file in files for item in plain_yaml.load_all(file.read_text()) if item]
    return [item for item in found if item["kind"] == kind]


def fetch_arguments(repository: Repository) -> list[str]:
    """Return the arguments of the rendered downloader."""
    (job,) = objects(repository, "Job")
    found: list[str] = job["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


def option(arguments: list[str], name: str) -> str:
    """Return the value of an argument."""
    (found,) = (each.partition("=")[2] for each in arguments if each.startswith(f"--{name}="))
    return found


def download(arguments: list[str], **env: str) -> tuple[int, str]:
    """Run the downloader; return its exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "kaigen_downloader", *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE), "KAIGEN_BACKOFF": "0.01"} | env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr


def test_everything_is_rendered_from_the_lock_with_the_network_cut(
    repository: Repository, hub: Hub, cut: Callable[[], None]
) -> None:
    large = {**CONFIG, "num_hidden_layers": 40}
    hub.commit(model_files(large, safetensors({"w": ("BF16", [4096, 4096])})))
    repository.write(model(hub, size="auto") + TOPOLOGY)
    assert repository.run("lock")[0] == 0
    locked = hub.revisions["main"]
    hub.commit(model_files() | {"README.md": b"moved"})  # The branch moves; the lock does not.
    cut()
    code, printed = repository.run("render")
    assert code == 0, printed
    assert "KG0310" not in printed
    assert option(fetch_arguments(repository), "revision") == locked
    (claim,) = objects(repository, "PersistentVolumeClaim")
    assert claim["spec"]["resources"]["requests"]["storage"] == "4Gi"
    (job,) = objects(repository, "Job")
    image = job["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == f"{repository.registry}/acme/tune:1@{DIGEST}"
    for arguments in (["validate"], ["plan", "specs"], ["mirror", "--list"], ["lock", "--check"], ["graph"]):
        code, printed = repository.run(*arguments)
        assert code == 0, printed
    assert repository.run("render", "--check")[0] == 0


def test_a_locked_branch_is_the_same_download_as_the_commit_in_the_spec(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.run("lock")
    repository.run("render")
    branch = fetch_arguments(repository)
    repository.write(model(hub, more=f"      revision: {hub.revisions['main']}\n"))
    assert repository.run("lock", "--check")[0] == 1
    repository.run("render")
    # An entry of the lock is found by its commit, too.
    assert fetch_arguments(repository) == branch


def test_a_model_that_the_catalogue_does_not_have_is_planned_from_the_lock(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub) + TOPOLOGY)
    code, printed = repository.run("plan", "specs")
    assert "the catalogue does not have `owner/name`" in printed
    repository.run("lock")
    code, printed = repository.run("plan", "specs")
    assert code == 0, printed
    assert "g6.12xlarge" in printed
    assert "32768" in printed


def test_facts_that_do_not_suffice_change_nothing(repository: Repository, hub: Hub) -> None:
    hub.commit(model_files({"architectures": ["WhisperModel"]}))
    repository.write(model(hub) + TOPOLOGY)
    repository.run("lock")
    assert repository.run("render")[0] == 0
    assert "the catalogue does not have `owner/name`" in repository.run("plan", "specs")[1]


@pytest.mark.parametrize(("more", "size"), [("", "8Gi"), ('      include: ["*.json"]\n', "4Gi")])
def test_size_auto_has_room_for_the_chosen_files_of_each_revision(
    repository: Repository, hub: Hub, more: str, size: str
) -> None:
    weights = hub.at("main")["model.safetensors"]
    weights.listed_size = 1 << 30
    repository.write(model(hub, more=more, size="auto"))
    assert repository.run("lock")[0] == 0
    repository.run("render")
    (claim,) = objects(repository, "PersistentVolumeClaim")
    assert claim["spec"]["resources"]["requests"]["storage"] == size


def test_size_auto_of_an_unknown_model_is_an_error_with_the_way_out(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub, size="auto"))
    code, printed = repository.run("render")
    assert code == 2
    assert "KG0320" in printed
    assert "run `kaigen lock`" in printed
    repository.write(model(hub, size="auto", repo="Qwen/Qwen2.5-0.5B-Instruct"))
    code, printed = repository.run("render")
    assert code == 0, printed
    (claim,) = objects(repository, "PersistentVolumeClaim")
    assert claim["spec"]["resources"]["requests"]["storage"] == "6Gi"


def test_a_changed_lock_is_rendered_although_specs_are_the_same(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.run("lock")
    repository.run("render")
    commit = hub.commit(model_files() | {"README.md": b"moved"})
    repository.run("lock", "--upgrade")
    assert repository.run("render", "--check")[0] == 1
    repository.run("render")
    assert option(fetch_arguments(repository), "revision") == commit


def test_the_downloader_accepts_what_was_locked_and_refuses_anything_else(
    repository: Repository, hub: Hub, tmp_path: Path
) -> None:
    repository.write(model(hub, more='      exclude: ["*.md"]\n'))
    repository.run("lock")
    repository.run("render")
    rendered = [each for each in fetch_arguments(repository) if not each.startswith(("--facts", "--keep"))]
    dest = tmp_path / "weights"
    arguments = [each if not each.startswith("--dest=") else f"--dest={dest}" for each in rendered]

    code, printed = download(arguments)
    assert code == 0, printed
    assert (dest / "model.safetensors").read_bytes() == WEIGHTS
    assert not (dest / "README.md").exists()
    assert "already complete" in download(arguments)[1]

    # A Hub that has other bytes under the reviewed commit, of the same length, with checksums that match them.
    files = hub.commits[hub.revisions["main"]]
    files["model.safetensors"].data = WEIGHTS[:-1] + b"x"
    code, printed = download([each.replace(str(dest), str(tmp_path / "other")) for each in arguments])
    assert (code, "not those of kaigen.lock" in printed) == (10, True), printed
    assert not (tmp_path / "other/.kaigen/model.json").exists()

    # A Hub that has more files is refused before the first byte.
    files["modeling.py"] = Stored(b"import os", lfs=False)
    sent = hub.sent
    code, printed = download([each.replace(str(dest), str(tmp_path / "more")) for each in arguments])
    assert (code, "the source has 3 files" in printed) == (10, True), printed
    assert hub.sent == sent


def test_the_transfer_list_has_the_files_of_the_lock(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub, more='      exclude: ["*.md"]\n'))
    repository.run("lock")
    code, printed = repository.run("-q", "mirror", "--list", "-o", "json")
    assert code == 0, printed
    (listing,) = json.loads(printed)
    (found,) = listing["models"]
    assert found["revision"] == hub.revisions["main"]
    assert found["bytes"] == len(WEIGHTS) + len(model_files()["config.json"])
    listed = {each["path"]: each["sha256"] for each in found["files"]}
    assert listed["model.safetensors"] == sha256(WEIGHTS).hexdigest()
    assert set(listed) == {"config.json", "model.safetensors"}
    assert [each["digest"] for each in listing["images"]] == [DIGEST]
    assert "may change" not in repository.run("mirror", "--list")[1]


def test_a_model_of_the_lock_is_planned_by_its_name(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    assert repository.run("plan", "--model", "owner/name")[0] == 2
    repository.run("lock")
    code, printed = repository.run("plan", "--model", "owner/name", "--instance-type", "g6.xlarge")
    assert code == 0, printed
    assert "owner/name on" in printed
    assert "32768" in printed


def test_explain_names_the_lock_as_the_origin_of_a_commit(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub, more="      revision: main\n"))
    repository.run("lock")
    code, printed = repository.run("-q", "explain", "--effective", "tuned", "-o", "json")
    assert code == 0, printed
    found = json.loads(printed)
    found = found[0] if isinstance(found, list) else found
    assert found["effective"]["spec"]["source"]["huggingFace"]["revision"] == hub.revisions["main"]
    assert found["origins"]["spec.source.huggingFace.revision"] == "kaigen.lock"
    assert found["origins"]["spec.source.huggingFace.repo"] == "specs/a.yaml:7"


def test_an_engine_that_pulls_weights_gets_the_locked_commit(repository: Repository, hub: Hub) -> None:
    named = f"model: {{huggingFace: {{repo: owner/name, endpoint: '{hub.url}'}}}}"
    repository.write(TOPOLOGY.replace("model: tuned", named))
    assert repository.run("lock")[0] == 0
    code, printed = repository.run("render")
    assert code == 0, printed
    assert "KG0310" not in printed
    (deployment,) = objects(repository, "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert f"--revision={hub.revisions['main']}" in container["args"]


def test_the_dialects_of_other_systems_are_locked(repository: Repository, hub: Hub) -> None:
    image = f"{repository.registry}/acme/tune:1"
    repository.write(
        "apiVersion: ai.re-cinq.com/v1\nkind: Job\nmetadata: {name: tune}\n"
        f"spec: {{image: '{image}', model: owner/name, diskSize: 5, command: [tune]}}\n"
    )
    repository.configure(f"network: {{hubEndpoint: '{hub.url}'}}\n")
    code, printed = repository.run("lock")
    assert code == 0, printed
    assert list(repository.lock["models"]) == ["owner/name@main"]
    code, printed = repository.run("render")
    assert code == 0, printed
    text = "".join(file.read_text() for file in (repository.root / "rendered").rglob("manifests/*.yaml"))
    assert f"--revision={hub.revisions['main']}" in text
    assert "--locked=3:" in text
    assert f"{image}@{DIGEST}" in text
