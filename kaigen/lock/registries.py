"""Ask registries for digests of images, and for the files of an OCI artifact or an image."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from kaigen.config.lock_file import LockedArtifact, LockedFile
from kaigen.diagnostics.errors import NotFound, SystemFailure
from kaigen.kinds.sources import Oci
from kaigen.kubernetes.images import ImageName, is_image, parse_image
from kaigen.lock.answers import read_facts
from kaigen.oci.attachments import EMPTY
from kaigen.oci.http import Unreachable
from kaigen.oci.registry import LATEST, Registry, registry_of

_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_IMAGE_CONFIGS = {"application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"}
_NAMES = ("org.opencontainers.image.title", "org.cncf.model.filepath")
"""Annotations with the name of a layer's file (source: OCI image specification; CNCF model specification)."""
_LICENCES = "org.opencontainers.image.licenses"
"""Annotation with an SPDX expression (source: OCI image specification)."""
_LONGEST_LICENCE = 200
_ATTEMPTS = 3
_TIMEOUT_S = 10.0
"""Seconds without an answer about an image, which is a few bytes, after which it is asked again."""


class Registries:
    """A client of registries."""

    def __init__(self, *, plain_http: bool = False) -> None:
        """Ask nothing yet.

        Args:
            plain_http: connect to remote registries without TLS.
        """
        self._plain_http = plain_http
        self._unreachable: dict[str, Unreachable] = {}

    def digest(self, image: ImageName) -> str:
        """Return the digest of an image or index.

        Raises:
            SystemFailure: the registry cannot be reached, or does not have the image.
        """
        digest = self.find_digest(image)
        if digest is None:
            tag = image.tag or LATEST
            raise SystemFailure(f"the registry {image.registry} has no {image.repository}:{tag}")
        return digest

    def find_digest(self, image: ImageName) -> str | None:
        """Return the digest of an image or index; None if the registry does not have it.

        A registry that could not be reached is not asked about another image.

        Raises:
            Unreachable: the registry cannot be reached.
            SystemFailure: it rejects the request.
        """
        if image.registry in self._unreachable:
            raise self._unreachable[image.registry]
        registry = registry_of(image, plain_http=self._plain_http, attempts=_ATTEMPTS, timeout=_TIMEOUT_S)
        try:
            return registry.digest(image.tag or LATEST)
        except Unreachable as error:
            self._unreachable[image.registry] = error
            raise

    def artifact(self, oci: Oci, *, data: bool) -> LockedArtifact:
        """Return the layers of an artifact or an image.

        Args:
            oci: the reference.
            data: whether the files are a dataset, which has no weights.

        Raises:
            NotFound: there is no such artifact.
            SystemFailure: the registry cannot be reached, rejects the request, or gives no valid answer.
        """
        if not is_image(oci.ref):
            raise NotFound(f"`{oci.ref}` is not the reference of an artifact")
        image = parse_image(oci.ref)
        registry = registry_of(image, plain_http=self._plain_http or oci.plain_http)
        digest, named = _manifest(registry, image, image.digest or image.tag or LATEST)
        try:
            manifest = named
            if "manifests" in named:
                _, manifest = _manifest(registry, image, _platform(named))
            licence = _licence(manifest) or _licence(named)
            return _locked(registry, digest, manifest, licence=licence, data=data)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            reason = f"{type(error).__name__}: {error}"[:300]
            raise SystemFailure(f"the registry has no usable manifest of {image} ({reason})") from None

    def content(self, oci: Oci, file: LockedFile) -> bytes:
        """Return the content of a layer.

        Raises:
            SystemFailure: the registry cannot be reached, or sends something else.
        """
        image = parse_image(oci.ref)
        registry = registry_of(image, plain_http=self._plain_http or oci.plain_http)
        return registry.blob_range(f"sha256:{file.sha256}", 0, file.size)


def _manifest(registry: Registry, image: ImageName, version: str) -> tuple[str, Mapping[str, Any]]:
    found = registry.named(version)
    if found is None:
        raise NotFound(f"the registry {image.registry} has no {image}")
    digest, content = found
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict):
        raise SystemFailure(f"the registry {image.registry} sends no manifest of {image}")
    return digest, manifest


def _platform(index: Mapping[str, Any]) -> str:
    """Return the digest of the manifest for linux/amd64, or of the first one, as the downloader does."""
    entries = [entry for entry in index["manifests"] if _DIGEST.fullmatch(entry["digest"])]
    fitting = [
        entry
        for entry in entries
        if (platform := entry.get("platform") or {}).get("os") == "linux" and platform.get("architecture") == "amd64"
    ]
    return str((fitting or entries)[0]["digest"])


def _licence(manifest: Mapping[str, Any]) -> str:
    """Return the licence that a manifest names; empty if it names none."""
    found = (manifest.get("annotations") or {}).get(_LICENCES)
    return found.strip()[:_LONGEST_LICENCE] if isinstance(found, str) and found.isprintable() else ""


def _locked(
    registry: Registry, digest: str, manifest: Mapping[str, Any], *, licence: str, data: bool
) -> LockedArtifact:
    """Return an artifact by its manifest."""
    is_image = manifest["config"]["mediaType"] in _IMAGE_CONFIGS
    files: dict[str, LockedFile] = {}
    for layer in manifest["layers"]:
        if layer["mediaType"] == EMPTY:
            continue
        if not _DIGEST.fullmatch(layer["digest"]):
            raise ValueError("a layer has no sha256 digest")
        notes = layer.get("annotations") or {}
        name = next((str(notes[each]) for each in _NAMES if each in notes), "")
        is_folder = "tar" in layer["mediaType"] or (is_image and "rootfs" in layer["mediaType"])
        path = layer["digest"] if is_folder or not name else name
        if int(layer["size"]) < 0 or not path.isprintable():
            raise ValueError("a layer has no usable name or size")
        files[path] = LockedFile(size=int(layer["size"]), sha256=layer["digest"].removeprefix("sha256:"))
    if not files:
        raise ValueError("it has no layers")

    def read(path: str, start: int, end: int) -> bytes:
        return registry.blob_range(f"sha256:{files[path].sha256}", start, min(end, files[path].size))

    # The files of an image are in compressed layers.
    facts = read_facts([] if data or is_image else files, read)
    return LockedArtifact(
        digest=digest,
        licence=licence,
        is_image=any(path.startswith("sha256:") for path in files),
        **facts.fields(),
        files=files,
    )
