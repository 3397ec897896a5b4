"""`kaigen pin` against a Hub and a registry: what it writes, keeps and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.exceptions import Exit

from kaigen.diagnostics.errors import InputError
from runtimes.downloader.tests.hub import COMMIT, Hub
from tests.unit.oci.web import Web
from tests.unit.pin.conftest import DIGEST, Repository

MODEL = """\
# The model of the team.
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {{name: qwen}} # its name
spec:
  source:
    huggingFace:
      repo: owner/name
      endpoint: {url}{revision}
  store: {{volume: {{size: 5Gi}}}}
"""


def model(hub: Hub, revision: str = "") -> str:
    return MODEL.format(url=hub.url, revision=f"\n      {revision}" if revision else "")


def job(image: str, **more: str) -> str:
    lines = "".join(f"  {name}: {value}\n" for name, value in more.items())
    return (
        "apiVersion: kaigen.dev/v1alpha1\nkind: Job\nmetadata: {name: tune}\n"
        f"spec:\n  image: {image}\n  command: [python, tune.py]\n{lines}"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("revision: main", f"revision: {COMMIT} # main"),
        ("revision: main   # the newest", f"revision: {COMMIT}   # main; the newest"),
        ('revision: "main"', f'revision: "{COMMIT}" # main'),
        ("revision: 'main' #", f"revision: '{COMMIT}' # main;"),
    ],
)
def test_a_branch_becomes_a_commit_and_stays_as_a_comment(repository: Repository, hub: Hub, old: str, new: str) -> None:
    repository.write(model(hub, old))
    result = repository.pin()
    assert result.exception is None
    assert repository.text() == model(hub, new)
    assert f"main → {COMMIT}" in result.output
    # What is pinned stays, and asks nothing.
    asked = len(hub.seen)
    assert "nothing to pin" in repository.pin().output
    assert len(hub.seen) == asked


def test_a_missing_revision_is_added_after_the_repository(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.pin()
    added = f"      repo: owner/name\n      revision: {COMMIT} # main\n"
    assert repository.text() == model(hub).replace("      repo: owner/name\n", added)


@pytest.mark.parametrize("revision", ["", "revision: main"])
def test_a_dataset_is_pinned_to_a_commit_of_its_own_repository(repository: Repository, revision: str) -> None:
    with Hub(repo="datasets/owner/name") as hub:
        repository.write(model(hub, revision).replace("kind: Model", "kind: Dataset"))
        assert repository.pin().exception is None
        pinned = f"revision: {hub.revisions['main']} # main"
        assert pinned in repository.text()
        assert [seen.path for seen in hub.seen] == ["/api/datasets/owner/name/revision/main"]


def test_flow_mappings_line_ends_and_other_documents_stay(repository: Repository, hub: Hub, images: Web) -> None:
    source = f"{{huggingFace: {{repo: owner/name, endpoint: '{hub.url}'}}}}"
    text = (
        "apiVersion: kaigen.dev/v1alpha1\nkind: Model\nmetadata: {name: a}\n"
        f"spec: {{source: {source}, store: {{volume: {{size: 5Gi}}}}}}\n---\n# next\n"
    )
    text = "\ufeff" + (text + job(f"{images.host}/acme/tune:1 # ours")).replace("\n", "\r\n")
    repository.write(text)
    assert repository.pin().exception is None
    changed = text.replace("owner/name,", f"owner/name, revision: {COMMIT},")
    changed = changed.replace("5Gi}}}\r\n", "5Gi}}} # main\r\n").replace("tune:1 #", f"tune:1@{DIGEST} #")
    assert repository.text() == changed


@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_an_image_keeps_its_tag_next_to_the_digest(repository: Repository, images: Web, quote: str) -> None:
    image = f"{images.host}/acme/tune:1"
    repository.write(job(f"{quote}{image}{quote} # why"))
    assert repository.pin().exception is None
    assert repository.text() == job(f"{quote}{image}@{DIGEST}{quote} # why")


def test_names_are_resolved_again_on_update_only(repository: Repository, hub: Hub, images: Web) -> None:
    old = "sha256:" + "0" * 64
    repository.write(model(hub, f"revision: {'0' * 40} # main; note"))
    repository.write(job(f"{images.host}/acme/tune:1@{old}"), "specs/b.yaml")
    assert "nothing to pin" in repository.pin().output
    assert repository.pin("--update").exception is None
    assert repository.text() == model(hub, f"revision: {COMMIT} # main; note")
    assert repository.text("specs/b.yaml") == job(f"{images.host}/acme/tune:1@{DIGEST}")


def test_check_asks_no_server_and_dry_run_writes_nothing(repository: Repository, hub: Hub, images: Web) -> None:
    texts = {"specs/a.yaml": model(hub, "revision: main"), "specs/b.yaml": job(f"{images.host}/acme/tune:1")}
    for name, text in texts.items():
        repository.write(text, name)
    result = repository.pin("--check", "-o", "json")
    assert isinstance(result.exception, Exit) or result.return_value == 1
    listed = json.loads(result.stdout)
    assert [(item["app"], item["field"]) for item in listed] == [
        ("qwen", "spec.source.huggingFace.revision"),
        ("tune", "spec.image"),
    ]
    assert hub.seen == []
    assert images.asked == []
    output = repository.pin("--dry-run").output
    assert f"+      revision: {COMMIT} # main" in output
    assert f"+  image: {images.host}/acme/tune:1@{DIGEST}" in output
    assert {name: repository.text(name) for name in texts} == texts
    repository.pin("tune")
    assert repository.text() == texts["specs/a.yaml"]
    assert DIGEST in repository.text("specs/b.yaml")


def test_the_hub_of_the_network_is_asked_where_a_spec_names_none(repository: Repository, hub: Hub) -> None:
    settings = f"apiVersion: kaigen.dev/v1alpha1\nkind: Config\nnetwork: {{hubEndpoint: '{hub.url}'}}\n"
    repository.write(settings, "kaigen.yaml")
    text = model(hub, "revision: main").replace(f"      endpoint: {hub.url}\n", "")
    repository.write(text)
    assert repository.pin().exception is None
    assert repository.text() == text.replace("main", f"{COMMIT} # main")


def refused(repository: Repository, *arguments: str) -> list[str]:
    """Return the messages of a refused call, which writes nothing."""
    before = repository.text()
    result = repository.pin(*arguments)
    assert isinstance(result.exception, InputError)
    assert {item.code for item in result.exception.diagnostics} == {"KG0719"}
    assert all(item.mark and item.mark.line > 1 for item in result.exception.diagnostics)
    assert repository.text() == before
    return [item.message for item in result.exception.diagnostics]


def test_every_name_that_cannot_be_resolved_is_reported_and_nothing_written(
    repository: Repository, hub: Hub, images: Web
) -> None:
    other = model(hub, "revision: main").replace("qwen", "good")
    repository.write(f"{model(hub, 'revision: gone')}---\n{job(images.host + '/acme/tune:2')}---\n{other}")
    first, second = refused(repository)
    assert first.endswith("has no `gone` of owner/name")
    assert second.endswith("has no acme/tune:2")


@pytest.mark.parametrize("sha", ["main", "", None, 7, "0" * 39, "../" + "0" * 40, "A" * 40])
def test_an_answer_of_the_hub_without_a_commit_is_refused(repository: Repository, hub: Hub, sha: object) -> None:
    hub.revisions["main"] = sha  # type: ignore[assignment]
    repository.write(model(hub, "revision: main"))
    (message,) = refused(repository)
    assert message.endswith("named no commit for `main` of owner/name")


def test_a_private_repository_is_read_with_the_token_of_the_user(
    repository: Repository, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.token = "hf_secret"
    repository.write(model(hub, "revision: main"))
    (message,) = refused(repository)
    assert message.endswith("does not have owner/name, or does not show it")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert repository.pin().exception is None
    assert COMMIT in repository.text()


def test_the_token_stays_with_the_hub(
    repository: Repository, make_web: Callable[[], Web], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    first, second = make_web(), make_web()
    first.answer = lambda method, path, auth: (302, {"Location": f"http://{second.host}{path}"}, b"")
    second.answer = lambda method, path, auth: (200, {}, b'{"sha": "%s"}' % (b"1" * 40))
    repository.write(MODEL.format(url=f"http://{first.host}", revision="\n      revision: main"))
    repository.pin()
    assert [auth for _, _, auth in first.asked] == ["Bearer hf_secret"]
    assert [auth for _, _, auth in second.asked] == [""]


def test_a_registry_that_sends_another_manifest_than_it_names_is_refused(repository: Repository, images: Web) -> None:
    named = "sha256:" + "1" * 64
    images.answer = lambda method, path, auth: (200, {"Docker-Content-Digest": named}, b"{}")
    repository.write(job(f"{images.host}/acme/tune:1"))
    (message,) = refused(repository)
    assert "sent another manifest of acme/tune:1 than it names" in message


def test_an_anchor_that_is_used_elsewhere_is_not_changed(repository: Repository, images: Web) -> None:
    image = f"&image {images.host}/acme/tune:1"
    repository.write(job(image, env="{IMAGE: *image}"))
    (message,) = refused(repository)
    assert message.startswith("the value cannot be changed without changing something else")
