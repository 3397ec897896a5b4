"""`kaigen lock` against a Hub and a registry: what it writes, keeps, checks and refuses."""

from __future__ import annotations

import json
import sys
from hashlib import sha256

import pytest

from runtimes.downloader.tests.hub import Hub, status
from tests.unit.lock.conftest import CONFIG, DIGEST, WEIGHTS, Repository, model, model_files, safetensors
from tests.unit.oci.web import Web


def key(hub: Hub, revision: str = "main") -> str:
    return f"{hub.url}/owner/name@{revision}"


def test_a_branch_is_locked_with_files_and_facts(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    code, printed = repository.run("lock")
    assert code == 0, printed
    found = repository.lock["models"][key(hub)]
    assert found == {
        "commit": hub.revisions["main"],
        "licence": "apache-2.0",
        "gated": False,
        "architecture": "LlamaForCausalLM",
        "parameters": {"BF16": 512 * 512, "F32": 512},
        "weights": 512 * 512 * 2 + 512 * 4,
        "config": CONFIG,
        "files": {
            path: {"size": len(data), "sha256": sha256(data).hexdigest()} for path, data in model_files().items()
        },
    }
    assert f"commit {hub.revisions['main'][:12]}, 3 files, 514.4 KiB, licence apache-2.0" in printed
    # Specs stay as they are.
    assert (repository.root / "specs/a.yaml").read_text() == model(hub)


def test_only_headers_of_weights_are_downloaded(repository: Repository, hub: Hub) -> None:
    large = safetensors({"a.weight": ("BF16", [1024, 4096])}, padding=200_000)
    hub.commit(model_files(weights=large))
    repository.write(model(hub))
    assert repository.run("lock")[0] == 0
    assert repository.lock["models"][key(hub)]["parameters"] == {"BF16": 1024 * 4096}
    ranges = [seen.range for seen in hub.requests("cdn", ".safetensors")]
    assert ranges == ["bytes=0-100000", f"bytes=8-{len(large) - 1024 * 4096 * 2 - 1}"]
    assert hub.sent < 400_000


def test_the_file_is_the_same_in_any_order_and_on_any_run(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.write(model(hub, "other", "      revision: v1\n"), "specs/b.yaml")
    hub.revisions["v1"] = hub.revisions["main"]
    assert repository.run("lock")[0] == 0
    first = (repository.root / "kaigen.lock").read_bytes()
    (repository.root / "kaigen.lock").unlink()
    repository.write(model(hub, "other"), "specs/b.yaml")
    repository.write(model(hub, more="      revision: v1\n"))
    assert repository.run("lock")[0] == 0
    assert (repository.root / "kaigen.lock").read_bytes() == first
    # A line for each file, so that a review shows which one changed.
    lines = [line for line in first.decode().splitlines() if '"README.md"' in line]
    assert len(lines) == 2
    assert all('"size": 10, "sha256": "' in line for line in lines)


def test_an_entry_stays_until_it_is_upgraded(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.run("lock")
    before = repository.lock["models"][key(hub)]["commit"]
    after = hub.commit(model_files() | {"README.md": b"# Another\n", "LICENSE": b"..."})
    hub.card = {"license": "other", "license_name": "acme-research"}
    asked = len(hub.seen)
    code, printed = repository.run("lock")
    assert (code, len(hub.seen)) == (0, asked), printed
    assert repository.lock["models"][key(hub)]["commit"] == before

    code, printed = repository.run("lock", "--upgrade", "tuned")
    assert code == 0
    assert repository.lock["models"][key(hub)]["commit"] == after
    assert f"moves from {before[:12]} to {after[:12]}" in printed
    assert "1 file added (LICENSE), 1 file changed (README.md)" in printed
    assert "of which 13 bytes are new" in printed
    assert "licence apache-2.0 becomes acme-research" in printed


def test_only_the_named_app_is_upgraded(repository: Repository, hub: Hub) -> None:
    with Hub() as other:
        other.commit(model_files())
        repository.write(model(hub))
        repository.write(model(other, "second"), "specs/b.yaml")
        repository.run("lock")
        before = hub.revisions["main"]
        hub.commit(model_files() | {"README.md": b"new"})
        after = other.commit(model_files() | {"README.md": b"new"})
        code, printed = repository.run("lock", "--upgrade", "second")
        assert code == 0, printed
        commits = {each["commit"] for each in repository.lock["models"].values()}
    assert commits == {before, after}
    code, printed = repository.run("lock", "--upgrade", "secnd")
    assert code == 2
    assert "did you mean" in printed


def test_check_reports_missing_and_unused_names_and_asks_no_server(
    repository: Repository, hub: Hub, images: Web
) -> None:
    repository.write(model(hub))
    code, printed = repository.run("lock", "--check")
    assert code == 1
    assert f"missing\t{key(hub)}" in printed
    repository.run("lock")
    asked = len(hub.seen), len(images.asked)
    assert repository.run("lock", "--check")[0] == 0
    # A branch that moves does not make the lock stale.
    hub.commit(model_files() | {"README.md": b"new"})
    assert repository.run("lock", "--check")[0] == 0
    repository.write(model(hub, more="      revision: v1\n"))
    code, printed = repository.run("lock", "--check")
    assert code == 1
    assert f"missing\t{key(hub, 'v1')}" in printed
    assert f"unused\t{key(hub)}" in printed
    assert (len(hub.seen), len(images.asked)) == asked


def test_check_with_upgrade_reports_a_branch_that_moved(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.run("lock")
    before = (repository.root / "kaigen.lock").read_bytes()
    assert repository.run("lock", "--check", "--upgrade")[0] == 0
    hub.commit(model_files() | {"README.md": b"new"})
    code, printed = repository.run("lock", "--check", "--upgrade")
    assert code == 1
    assert "moves from" in printed
    assert (repository.root / "kaigen.lock").read_bytes() == before


def test_images_of_rendered_objects_are_locked(repository: Repository, hub: Hub, images: Web) -> None:
    repository.write(model(hub))
    repository.run("lock")
    assert repository.lock["images"] == {f"{images.host}/acme/tune:1": DIGEST}


def test_images_of_a_router_have_the_digests_of_the_lock(repository: Repository, images: Web) -> None:
    repository.write(
        "apiVersion: kaigen.dev/v1alpha1\nkind: Topology\nmetadata: {name: chat}\n"
        "spec: {model: {folder: /weights}, resources: {gpus: 0}, router: {}}\n"
    )
    assert repository.run("lock")[0] == 0
    code, printed = repository.run("render")
    assert code == 0, printed
    (router,) = repository.root.glob("rendered/**/deployment-router.yaml")
    assert router.read_text().count(f"{images.host}/acme/tune:1@{DIGEST}") == 2


def test_names_of_all_environments_are_locked(repository: Repository, hub: Hub) -> None:
    repository.configure(
        "environments:\n  dev: {namespace: dev}\n  prod:\n    namespace: prod\n    overrides:\n"
        "      - match: {app: tuned}\n        spec: {source: {huggingFace: {revision: v1}}}\n"
    )
    hub.revisions["v1"] = hub.commit(model_files() | {"README.md": b"v1"}, "v1")
    repository.write(model(hub))
    code, printed = repository.run("lock")
    assert code == 0, printed
    assert sorted(repository.lock["models"]) == [key(hub), key(hub, "v1")]


def test_all_names_that_do_not_exist_are_reported_at_once(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub, more="      revision: nope\n"))
    repository.write(model(hub, "other", repo="owner/missing"), "specs/b.yaml")
    code, printed = repository.run("lock")
    assert code == 2
    assert printed.count("error[KG0751]") == 2
    assert "specs/a.yaml:9:" in printed
    assert "has no `nope` of owner/name" in printed
    assert "specs/b.yaml:7:" in printed
    assert "does not have owner/missing, or does not show it" in printed
    assert not (repository.root / "kaigen.lock").exists()


def test_a_server_that_fails_is_exit_code_3_with_all_problems(repository: Repository, hub: Hub) -> None:
    with Hub() as gone:
        repository.write(model(gone, "gone"))
    repository.write(model(hub, "other", more="      revision: nope\n"), "specs/b.yaml")
    code, printed = repository.run("lock")
    assert code == 3
    assert "cannot reach the Hub" in printed
    assert "has no `nope`" in printed
    hub.fail(100, "hub", status(503))
    repository.write(model(hub))
    code, printed = repository.run("lock")
    assert code == 3
    assert "answered HTTP 503" in printed


def test_a_server_that_is_busy_for_a_moment_is_asked_again(repository: Repository, hub: Hub) -> None:
    hub.fail(2, "hub", status(503), "/api/")
    repository.write(model(hub))
    assert repository.run("lock")[0] == 0


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_token_of_the_user_opens_a_gated_repository(
    repository: Repository, hub: Hub, monkeypatch: pytest.MonkeyPatch, is_stored: bool
) -> None:
    hub.token, hub.gated = "hf_" + "x" * 34, True
    repository.write(model(hub))
    code, printed = repository.run("lock")
    assert code == 2
    assert "owner/name is gated" in printed
    assert "set HF_TOKEN" in printed
    if is_stored:
        repository.write(hub.token, "token")
        monkeypatch.setenv("HF_TOKEN_PATH", str(repository.root / "token"))
        monkeypatch.setenv("HF_ENDPOINT", hub.url)  # A stored token is not for Hubs that only a spec names.
    else:
        monkeypatch.setenv("HF_TOKEN", hub.token)
    code, printed = repository.run("lock")
    assert code == 0, printed
    text = (repository.root / "kaigen.lock").read_text()
    assert hub.token not in text + printed
    assert repository.lock["models"][key(hub)]["gated"] is True
    # The storage that the Hub redirects to is another server.
    assert [seen.authorization for seen in hub.requests("cdn")] == [None]


@pytest.mark.parametrize(
    ("more", "warns"),
    [
        ("", True),
        ("      tokenSecret: {name: hub}\n", False),
        ("  env: {HF_TOKEN: {secret: {name: hub, key: token}}}\n", False),
    ],
)
def test_a_gated_repository_without_a_token_is_a_warning(
    repository: Repository, hub: Hub, more: str, warns: bool
) -> None:
    repository.write(model(hub, more=more))
    assert repository.run("lock")[0] == 0
    code, printed = repository.run("validate")
    assert (code, "KG0355" in printed) == (0, False), printed
    hub.gated = True
    hub.commit(model_files() | {"LICENSE": b"..."})
    printed = repository.run("lock", "--upgrade")[1]
    assert "a token is needed now" in printed
    code, printed = repository.run("validate")
    assert (code, "warning[KG0355]: owner/name is gated" in printed) == (0, warns), printed


def test_a_small_file_with_other_content_than_the_hub_lists_is_refused(repository: Repository, hub: Hub) -> None:
    hub.at("main")["README.md"].listed_oid = "0" * 40
    repository.write(model(hub))
    code, printed = repository.run("lock")
    assert code == 3
    assert "README.md is not the file that it lists" in printed


def test_numbers_that_json_does_not_have_become_null(repository: Repository, hub: Hub) -> None:
    files = model_files()
    files["config.json"] = b'{"limits": [0.0, Infinity], "architectures": ["A"]}'
    hub.commit(files)
    repository.write(model(hub))
    assert repository.run("lock")[0] == 0
    assert repository.lock["models"][key(hub)]["config"]["limits"] == [0.0, None]
    assert repository.run("lock", "--check")[0] == 0


def test_a_repository_without_safetensors_has_its_files_only(repository: Repository, hub: Hub) -> None:
    hub.commit({"model.gguf": b"GGUF"})
    repository.write(model(hub))
    assert repository.run("lock")[0] == 0
    found = repository.lock["models"][key(hub)]
    assert (found["parameters"], found["weights"], found["config"]) == ({}, 0, {})
    assert list(found["files"]) == ["model.gguf"]


def test_a_second_copy_of_the_weights_does_not_count(repository: Repository, hub: Hub) -> None:
    hub.commit(model_files() | {"consolidated.safetensors": WEIGHTS, "original/a.safetensors": WEIGHTS})
    repository.write(model(hub))
    assert repository.run("lock")[0] == 0
    assert repository.lock["models"][key(hub)]["parameters"] == {"BF16": 512 * 512, "F32": 512}


def test_a_damaged_lock_is_reported_at_its_line(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.run("lock")
    text = (repository.root / "kaigen.lock").read_text()
    repository.write(text.replace('"gated": false', '"gated": "no"'), "kaigen.lock")
    code, printed = repository.run("lock")
    assert code == 2
    assert "kaigen.lock:8:" in printed
    repository.write(text.replace('"kind"', "<<<<<<<"), "kaigen.lock")
    code, printed = repository.run("lock", "--check")
    assert code == 2
    assert "kaigen.lock" in printed


def edited(repository: Repository, before: str, after: str) -> tuple[int, str]:
    """Change the lock by hand, and return what `kaigen validate` answers."""
    path = repository.root / "kaigen.lock"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    return repository.run("validate")


def test_a_lock_cannot_replace_the_commit_in_a_spec(repository: Repository, hub: Hub) -> None:
    commit = hub.revisions["main"]
    repository.write(model(hub, more=f"      revision: {commit}\n"))
    repository.run("lock")
    code, printed = edited(repository, f'"commit": "{commit}"', f'"commit": "{"b" * 40}"')
    assert code == 2
    assert f"kaigen.lock:6:17: error[KG0750]: the name of this entry has `{commit}`" in printed
    assert repository.run("lock", "--check")[0] == 2
    assert repository.run("render")[0] == 2


def test_a_commit_in_the_name_of_a_branch_entry_is_free(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.run("lock")
    commit = hub.revisions["main"]
    assert edited(repository, f'"commit": "{commit}"', f'"commit": "{"b" * 40}"')[0] == 0


def test_a_digest_and_a_commit_of_git_must_be_those_of_their_names(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.run("lock")
    own, other = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
    entries = {
        "artifacts": {f"r.example/a:1@{own}": {"digest": other, "files": {}}},
        "git": {f"https://g.example/a@{'a' * 40}": "b" * 40, "https://g.example/a@main": "b" * 40},
    }
    repository.write(json.dumps(repository.lock | entries, indent=1), "kaigen.lock")
    code, printed = repository.run("validate")
    assert code == 2
    assert printed.count("KG0750") == 2
    assert f"has `{own}`" in printed
    assert f"has `{'a' * 40}`" in printed


def test_duplicate_keys_in_a_lock_are_errors(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.run("lock")
    code, printed = edited(repository, '"gated": false,', '"gated": false, "gated": true,')
    assert code == 2
    assert "error[KG0130]: duplicate key `gated`" in printed


def test_a_hub_that_answers_with_another_commit_is_an_error(repository: Repository, hub: Hub) -> None:
    hub.revisions["a" * 40] = hub.revisions["main"]
    repository.write(model(hub, more=f"      revision: {'a' * 40}\n"))
    code, printed = repository.run("lock")
    assert code == 3
    assert f"it names commit {hub.revisions['main']} for commit {'a' * 40}" in printed
    assert not (repository.root / "kaigen.lock").exists()


def test_output_for_machines(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    code, printed = repository.run("-q", "lock", "-o", "json")
    assert code == 0
    changes = {key(hub): "added", f"{repository.registry}/acme/tune:1": "added"}
    assert json.loads(printed) == {"changes": changes, "written": True}
    code, printed = repository.run("-q", "lock", "--check", "-o", "json")
    assert json.loads(printed) == {"missing": [], "unused": []}


def test_without_huggingface_hub_the_message_names_the_extra(
    repository: Repository, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    repository.write(model(hub))
    code, printed = repository.run("lock")
    assert code == 3
    assert 'pip install "kaigen[lock]"' in printed
    # Nothing is asked of the Hub, so nothing is missing.
    (repository.root / "specs/a.yaml").write_text(
        "apiVersion: kaigen.dev/v1alpha1\nkind: Job\nmetadata: {name: tune}\n"
        f"spec: {{image: '{repository.registry}/acme/tune:1', command: [a], resources: {{cpu: 1, memory: 1Gi}}}}\n"
    )
    code, printed = repository.run("lock")
    assert code == 0, printed
    assert repository.lock["images"] == {f"{repository.registry}/acme/tune:1": DIGEST}


def test_an_image_in_the_values_of_kaigen_yaml_is_not_locked(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.configure("values: {tuned: {download: {image: example.com/acme/other:2}}}\n")
    code, printed = repository.run("lock")
    assert code == 0, printed
    assert repository.lock["images"] == {}
