"""The image of a resource: an existing one, or one that kaigen builds from a Git repository."""

from __future__ import annotations

import re

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.substratus.kinds import ContainerSpec, ImageBlock
from kaigen.dialects.substratus.names import short
from kaigen.dialects.substratus.resource import SPEC, SubstratusLowering
from kaigen.kinds.lowering import PREFIX

CONTEXT = "build-context"
"""Annotation with the artifact of a local folder, which `kaigen build push` pushes."""

_CONTAINER: FieldPath = (*SPEC, "container")
_BUILD: FieldPath = (*SPEC, "build")
_IMAGE: FieldPath = (*SPEC, "image")
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}|<[^<>]*>")
_DEFAULT_BRANCH = "HEAD"
_REFS = ("refs/heads/", "refs/branch/", "refs/tags/")


class _Source(Struct, frozen=True):
    """A repository to build from.

    Attributes:
        url: of the repository.
        path: folder with the Dockerfile; None for its root.
        commit: the commit; None where the resource names none.
        name: branch or tag as Git names it.
        at: the block.
        commit_at: the field with the commit, branch or tag.
    """

    url: str
    path: str | None
    commit: str | None
    name: str
    at: FieldPath
    commit_at: FieldPath


def put_image(draft: Draft, spec: ContainerSpec, lowering: SubstratusLowering) -> bool:
    """Put the image, and return whether there is one.

    Args:
        draft: the spec that gets it.
        spec: the spec of the resource.
        lowering: collects problems.
    """
    container, build = spec.container, spec.build
    if isinstance(spec.image, ImageBlock):
        if build is not None or container is not None:
            message = f"`image` and `{'build' if build is not None else 'container'}` both name the image"
            lowering.error("KG0412", message, _IMAGE, "keep one of the two", key=True)
            return True
        image, at = _read_block(spec.image, lowering), (*_IMAGE, "name")
    else:
        image, at = spec.image, _IMAGE
    if container is not None and container.image is not None:
        if image is not None:
            lowering.error("KG0412", "`image` and `container.image` both name the image", at, "keep one of the two")
        image, at = container.image, (*_CONTAINER, "image")
    source = _source(spec)
    if image is not None and (source is not None or build is not None):
        _refuse_both(source, at, lowering)
        return True
    if build is not None and build.git is None and build.upload is None:
        message = "`build` has neither `git` nor `upload`; the operator crashes on it"
        lowering.error("KG0412", message, _BUILD, "set `build.git`, or `image` for an existing one", key=True)
        return True
    if source is not None:
        _put_git(draft, source, lowering)
        _put_build(draft, source.at, lowering)
        return True
    context = lowering.given.get(CONTEXT)
    if context is not None and image is not None:
        message = f"`{at[-1]}` and `{PREFIX}{CONTEXT}` both name the image"
        lowering.error("KG0412", message, at, "keep one of the two", key=True)
    elif context is not None:
        _put_context(draft, context, local_fields(spec), lowering)
        return True
    if image is None:
        return False
    if _PLACEHOLDER.search(image):
        lowering.error("KG0410", f"`{image}` is a placeholder for an image", at, "write the image")
    draft.put(("spec", "image"), image, at)
    return True


def _read_block(block: ImageBlock, lowering: SubstratusLowering) -> str | None:
    """Return the existing image that the block of earlier releases names, and report what differs from later ones."""
    lowering.warning(
        "KG0414",
        "the block `image` is of releases 0.4 to 0.6, whose containers use `/model/saved` or others; kaigen mounts "
        "those of the last release, `/content/artifacts` for what the container writes",
        _IMAGE,
        "write `image`, or `build.git`, when the program uses these folders",
        key=True,
    )
    if block.git is None and block.upload is None:
        if block.name is None:
            message = "`image` has no `name`, `git` or `upload`"
            lowering.error("KG0412", message, _IMAGE, "set `image` to an existing image, or `build.git`", key=True)
        return block.name
    if block.name is not None:
        lowering.without_effect((*_IMAGE, "name"), "the operator writes it when the image is built")
    return None


def refuse_local(spec: ContainerSpec, lowering: SubstratusLowering) -> None:
    """Report images of local folders, which nothing in Git can rebuild."""
    if CONTEXT in lowering.given:
        return
    for path in local_fields(spec):
        message = f"kaigen renders what is in Git, and `{path[-1]}` is a folder of somebody's computer"
        hint = f"push the folder with `kaigen build push`, and set `{PREFIX}{CONTEXT}` to what it prints"
        lowering.error("KG0413", message, path, hint, key=True)


def local_fields(spec: ContainerSpec) -> list[FieldPath]:
    """Return the fields by which an image is built from a local folder."""
    found: list[FieldPath] = []
    if spec.container is not None and spec.container.local:
        found.append((*_CONTAINER, "local"))
    if spec.build is not None and spec.build.upload is not None:
        found.append((*_BUILD, "upload"))
    if isinstance(spec.image, ImageBlock) and spec.image.upload is not None:
        found.append((*_IMAGE, "upload"))
    return found


def _refuse_both(source: _Source | None, at: FieldPath, lowering: SubstratusLowering) -> None:
    """Report an image next to a build of one."""
    if source is not None and source.at[:2] == _CONTAINER:
        lowering.error(
            "KG0412",
            "`container` has `git` and `image`; the operator's design allows only one of them",
            at,
            "keep `git` to build the image, or `image` for an existing one",
            key=True,
        )
        return
    lowering.error(
        "KG0412",
        "`image` next to `build`: the operator starts this image, and replaces it when the build ends",
        at,
        "delete `image`, which the operator writes, or `build`",
        key=True,
    )


def _source(spec: ContainerSpec) -> _Source | None:
    container, build = spec.container, spec.build
    if isinstance(spec.image, ImageBlock) and spec.image.git is not None:
        old, place = spec.image.git, (*_IMAGE, "git")
        written = "commit" if old.commit else "branch" if old.branch else "url"
        return _Source(old.url, old.path, old.commit, old.branch or _DEFAULT_BRANCH, place, (*place, written))
    if container is not None and container.git is not None:
        git = container.git
        at: FieldPath = (*_CONTAINER, "git")
        field = "commit" if git.commit else "ref" if git.ref else "url"
        return _Source(git.url, git.path, git.commit, _ref_name(git.ref), at, (*at, field))
    if build is not None and build.git is not None:
        own, at = build.git, (*_BUILD, "git")
        field = "commit" if own.commit else "tag" if own.tag else "branch" if own.branch else "url"
        return _Source(own.url, own.path, own.commit, own.tag or own.branch or _DEFAULT_BRANCH, at, (*at, field))
    return None


def _ref_name(ref: str | None) -> str:
    """Return a branch or tag without the prefix that Git, or the design, writes before it."""
    for prefix in _REFS:
        if ref is not None and ref.startswith(prefix):
            return ref.removeprefix(prefix)
    return ref or _DEFAULT_BRANCH


def _put_context(draft: Draft, context: str, local: list[FieldPath], lowering: SubstratusLowering) -> None:
    """Put the build of an image from a local folder that was pushed to a registry."""
    at = lowering.directive_at(CONTEXT)
    if not local:
        message = f"`{PREFIX}{CONTEXT}` has no effect without `container.local` or `build.upload`"
        lowering.error("KG0406", message, at, "set one of them, or delete the annotation", key=True)
    draft.put(("spec", "build", "artifact"), context, at)
    _put_build(draft, at, lowering)


def _put_git(draft: Draft, source: _Source, lowering: SubstratusLowering) -> None:
    """Put the repository that an image is built from."""
    build: FieldPath = ("spec", "build")
    url = source.url.rstrip("/")
    draft.put((*build, "git", "url"), url if url.endswith(".git") else f"{url}.git", (*source.at, "url"))
    draft.put((*build, "git", "commit"), source.commit or source.name, source.commit_at)
    if source.path is not None:
        draft.put((*build, "git", "path"), source.path, (*source.at, "path"))
    draft.hints["KG0397"] = (
        "run `kaigen lock` to record the commit, or set `commit` to the 40 hex digits that "
        f"`git ls-remote {url} {source.name}` prints"
    )


def _put_build(draft: Draft, at: FieldPath, lowering: SubstratusLowering) -> None:
    """Put where the image is pushed, with the operator's name in the registry."""
    build: FieldPath = ("spec", "build")
    registry = lowering.settings.get("registry")
    if not isinstance(registry, str):
        lowering.error(
            "KG0413",
            "nothing says which registry gets the built image",
            at,
            "set `dialects.substratus.registry` in kaigen.yaml",
            key=True,
        )
        return
    cluster = lowering.settings.get("clusterName")
    parts = [cluster, short(lowering.kind), lowering.namespace, lowering.name]
    name = "-".join(str(part) for part in parts if part)
    draft.put((*build, "repository"), f"{registry}/{name}", at)
    push, pull = lowering.settings.get("pushSecret"), lowering.settings.get("pullSecret")
    if push:
        draft.put((*build, "pushSecret", "name"), push, at)
    if pull:
        draft.put(("spec", "imagePullSecrets"), [pull], at)
