"""A signature is for one artifact: its content, its repository and its tags."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from kaigen.cli.main import run
from kaigen.oci.attachments import attach, descriptor
from kaigen.oci.reference import Reference
from kaigen.oci.registry import MANIFEST, Registry, digest_of
from kaigen.oci.signature import PREDICATE, TAGS
from kaigen.signing.bundle import BUNDLE, sign_statement
from kaigen.signing.keys import read_private_key
from tests.keys import write_keys
from tests.unit.oci.server import Stored, oci_registry
from tests.unit.publish.clones import Clone

OLD, NEW = (
    json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "annotations": {"version": version}}).encode()
    for version in ("0.1.0", "0.2.0")
)


class Scene(Struct, frozen=True):
    """A registry with an older and a newer artifact in `acme/qwen`, and a key."""

    stored: Stored
    private: Path
    public: Path

    def address(self, place: str) -> str:
        """Return the address of REPOSITORY:TAG or REPOSITORY@DIGEST in the registry."""
        return f"oci://{self.stored.host}/{place}"

    def sign(self, place: str) -> None:
        """Sign an artifact as a pipeline does."""
        assert run(["sign", "--key", str(self.private), self.address(place)]) == 0

    def verify(self, place: str, *options: str) -> int:
        """Return the exit code of `kaigen verify`, with `{host}` in options replaced."""
        given = [option.replace("{host}", self.stored.host) for option in options]
        return run(["verify", "--key", str(self.public), self.address(place), *given])

    def sign_as(self, subject: dict[str, object], content: bytes = OLD) -> None:
        """Attach a signature of a content with any other facts about it, as other tools and older versions do."""
        digest = {"sha256": digest_of(content).partition(":")[2]}
        bundle = sign_statement(read_private_key(self.private), PREDICATE, [{"digest": digest, **subject}], {})
        registry = Registry(Reference(self.stored.host, "acme/qwen"))
        attach(registry, descriptor(MANIFEST, content), [(BUNDLE, bundle)])


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with oci_registry() as stored:
        for tag, content in (("0.1.0", OLD), ("0.2.0", NEW)):
            Registry(Reference(stored.host, "acme/qwen")).push_manifest(tag, content, MANIFEST)
            Registry(Reference(stored.host, "acme/qwen")).push_manifest(digest_of(content), content, MANIFEST)
        yield Scene(stored, *write_keys(tmp_path / "keys"))


def test_a_signed_artifact_is_verified_by_its_tag_and_by_its_digest(scene: Scene) -> None:
    scene.sign("acme/qwen:0.1.0")
    count = len(scene.stored.manifests)
    scene.sign("acme/qwen:0.1.0")
    scene.sign(f"acme/qwen@{digest_of(OLD)}")
    assert len(scene.stored.manifests) == count, "it is signed already"
    assert scene.verify("acme/qwen:0.1.0") == 0
    assert scene.verify(f"acme/qwen@{digest_of(OLD)}") == 0
    assert scene.verify("acme/qwen:0.2.0") == 1


PLACES = {
    "an older artifact under the tag of a newer one": ("acme/qwen:0.2.0", ()),
    "the default tag": ("acme/qwen", ()),
    "a tag that differs in case": ("acme/qwen:0.1.0-RC", ()),
    "a tag that begins like it": ("acme/qwen:0.1.0-1", ()),
    "a tag that it begins with": ("acme/qwen:0.1", ()),
    "a tag with the digest": (f"acme/qwen:0.2.0@{digest_of(OLD)}", ()),
    "another repository": ("acme/other:0.1.0", ()),
    "another repository, by its digest": (f"acme/other@{digest_of(OLD)}", ()),
    "a repository that begins like it": ("acme/qwen-evil:0.1.0", ()),
    "a repository below it": ("acme/qwen/evil:0.1.0", ()),
    "another tag than the expected one": ("acme/qwen:0.1.0", ("--tag", "0.2.0")),
    "another repository than the expected one": ("acme/qwen:0.1.0", ("--name", "{host}/acme/other")),
    "a repository of another host": ("acme/qwen:0.1.0", ("--name", "registry.example/acme/qwen")),
    "the name of a copy without its host": ("acme/other:0.1.0", ("--name", "acme/qwen")),
}
"""Where somebody who may write to the registry can put a signed artifact, or what it is not."""


@pytest.mark.parametrize(("place", "options"), PLACES.values(), ids=PLACES)
def test_a_signed_artifact_at_another_place_is_not_verified(
    place: str, options: tuple[str, ...], scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.sign("acme/qwen:0.1.0")
    repository = place.partition("@")[0].rpartition(":")[0] or place.partition("@")[0]
    scene.stored.copy("acme/qwen", repository)
    for name in ("latest", "0.2.0", "0.1.0-RC", "0.1.0-1", "0.1"):
        scene.stored.manifests[repository, name] = OLD
    assert scene.verify(place, *options) == 1
    err = capsys.readouterr().err
    assert f"is signed as {scene.stored.host}/acme/qwen:0.1.0, and not as " in err
    assert "--name" in err


def test_a_copy_is_verified_by_the_name_that_it_was_signed_with(scene: Scene) -> None:
    scene.sign("acme/qwen:0.1.0")
    scene.stored.copy("acme/qwen", "mirror/qwen")
    assert scene.verify("mirror/qwen:0.1.0") == 1
    assert scene.verify("mirror/qwen:0.1.0", "--name", "{host}/acme/qwen") == 0
    scene.stored.manifests["mirror/qwen", "prod"] = OLD
    assert scene.verify("mirror/qwen:prod", "--name", "{host}/acme/qwen") == 1
    assert scene.verify("mirror/qwen:prod", "--name", "{host}/acme/qwen", "--tag", "0.1.0") == 0


def test_an_artifact_is_signed_again_for_another_tag(scene: Scene) -> None:
    scene.sign("acme/qwen:0.1.0")
    scene.stored.manifests["acme/qwen", "prod"] = OLD
    assert scene.verify("acme/qwen:prod") == 1
    scene.sign("acme/qwen:prod")
    assert scene.verify("acme/qwen:prod") == 0
    assert scene.verify("acme/qwen:0.1.0") == 0


OTHERS = {
    "of cosign, without a name": ({"annotations": {}}, 0, 1, 1),
    "of kaigen 0.1.0, without tags": ({"name": "{host}/acme/qwen"}, 0, 0, 1),
    "with a name alone that is another": ({"name": "{host}/acme/other"}, 1, 1, 1),
    "with tags alone": ({"annotations": {TAGS: "0.1.0 latest"}}, 0, 1, 0),
    "with tags alone that are others": ({"annotations": {TAGS: "0.2.0"}}, 1, 1, 1),
    "with other annotations": ({"name": "{host}/acme/qwen", "annotations": {"team": "ml"}}, 0, 0, 1),
    "with a name that is not text": ({"name": ["{host}/acme/qwen"]}, 1, 1, 1),
    "with tags that are not text": ({"annotations": {TAGS: ["0.1.0"]}}, 1, 1, 1),
    "with annotations that are not a mapping": ({"annotations": "0.1.0"}, 1, 1, 1),
}
"""Signatures of other tools and versions: exit codes by default, with the right --name, with the right --tag."""


@pytest.mark.parametrize(("subject", "default", "name", "tag"), OTHERS.values(), ids=OTHERS)
def test_a_signature_without_a_fact_is_valid_unless_the_fact_is_expected(
    subject: dict[str, object], default: int, name: int, tag: int, scene: Scene
) -> None:
    text = json.dumps(subject).replace("{host}", scene.stored.host)
    scene.sign_as(json.loads(text))
    assert scene.verify("acme/qwen:0.1.0") == default
    assert scene.verify("acme/qwen:0.1.0", "--name", "{host}/acme/qwen") == name
    assert scene.verify("acme/qwen:0.1.0", "--tag", "0.1.0") == tag


def test_one_of_several_signatures_must_have_both_facts(scene: Scene) -> None:
    scene.sign_as({"name": f"{scene.stored.host}/acme/qwen", "annotations": {TAGS: "0.2.0"}})
    scene.sign_as({"name": f"{scene.stored.host}/acme/other", "annotations": {TAGS: "0.1.0"}})
    assert scene.verify("acme/qwen:0.1.0") == 1


@pytest.mark.parametrize(
    "options", [("--tag", "x"), ("--name", "x"), ("oci://a/b", "--tag", ""), ("oci://a/b", "oci://a/c", "--tag", "x")]
)
def test_expected_facts_are_those_of_one_artifact(options: tuple[str, ...], scene: Scene) -> None:
    assert run(["verify", "--key", str(scene.public), *options]) == 2


def test_what_is_published_is_signed_for_its_tags(
    scene: Scene, clone: Clone, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clone.job("qwen")
    clone.commit("a job")
    monkeypatch.chdir(clone.folder)
    targets = {"--charts": "charts", "--manifests": "manifests"}
    for option, repository in targets.items():
        key = ("--sign-key", str(scene.private))
        assert run(["publish", option, scene.address(repository), *key]) == 0, capsys.readouterr().err
        before = len(scene.stored.manifests)
        assert run(["publish", option, scene.address(repository), *key]) == 0
        assert len(scene.stored.manifests) == before, "signing again adds nothing"
    commit = clone.git("rev-parse", "HEAD")[:12]
    for place in ("charts/qwen:0.1.0", "manifests:latest", f"manifests:{commit}"):
        repository, _, tag = place.rpartition(":")
        assert scene.verify(place) == 0
        assert scene.verify(place, "--name", f"{{host}}/{repository}", "--tag", tag) == 0
        scene.stored.manifests[repository, "other"] = scene.stored.manifests[repository, tag]
        assert scene.verify(f"{repository}:other") == 1
