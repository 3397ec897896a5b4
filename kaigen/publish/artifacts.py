"""Builds OCI artifacts from rendered apps: one chart per app, or the manifests of an environment. Pure."""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zlib import crc32

import yaml

from kaigen.diagnostics.errors import InputError
from kaigen.kubernetes.images import images_of
from kaigen.oci.reference import Reference, parse_reference
from kaigen.publish.artifact import FLUX_CONFIG, FLUX_CONTENT, HELM_CONFIG, HELM_CONTENT, REVISION, Artifact
from kaigen.publish.source import Source
from kaigen.signing.bundle import canonical_json

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.pipeline.result import Compilation, Compiled


# No name, no time, no extra flags, unknown system: RFC 1952.
_GZIP_HEADER = bytes.fromhex("1f8b08000000000000ff")
_LARGEST_BLOCK = 0xFFFF


def tgz(files: Mapping[str, bytes], *, first: tuple[str, ...] = ()) -> bytes:
    """Return a `.tar.gz` of these files.

    Args:
        files: content by path.
        first: paths to put first, in this order, if they exist; all others are sorted.

    Returns:
        The archive. All times are 1970, all owners root, all modes 0644. It is not compressed: implementations of
        deflate differ, and the same content must have the same digest.
    """
    order = [path for path in first if path in files]
    order += sorted(files.keys() - set(order))
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in order:
            entry = tarfile.TarInfo(path)
            entry.size = len(files[path])
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(files[path]))
    return gzip_stored(target.getvalue())


def gzip_stored(data: bytes) -> bytes:
    """Return the data as a gzip file (RFC 1952) of stored blocks (RFC 1951, 3.2.4)."""
    return b"".join([_GZIP_HEADER, *_blocks(data), struct.pack("<II", crc32(data), len(data) & 0xFFFFFFFF)])


def _blocks(data: bytes) -> Iterator[bytes]:
    for start in range(0, max(len(data), 1), _LARGEST_BLOCK):
        block = data[start : start + _LARGEST_BLOCK]
        last = start + _LARGEST_BLOCK >= len(data)
        yield struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF) + block


CHART_FIRST = ("Chart.yaml", "values.yaml", "values.schema.json", "templates/NOTES.txt")


def expand(text: str, config: Config, namespace: str = "") -> str:
    """Return an address with `{env}` and `{namespace}` replaced.

    Raises:
        InputError: KG0902, `{env}` without an environment.
    """
    if "{env}" in text and not config.environment:
        hint = "choose an environment with --env, or remove `{env}`"
        raise InputError.of("KG0902", f"`{text}` needs an environment, but none is selected", hint=hint)
    return text.replace("{env}", config.environment).replace("{namespace}", namespace)


def chart_artifact(item: Compiled, config: Config, url: str, materials: Mapping[str, str]) -> Artifact:
    """Return the chart of an app, packed like `helm package` does.

    Args:
        item: the app.
        config: the settings that it was compiled with.
        url: the OCI repository to push charts below.
        materials: SHA-256 of each input file.

    Raises:
        InputError: KG0906, the address is invalid.
    """
    name, version = item.app.name, item.version_in("chart")
    folder = f"{item.app.namespace}/{name}/chart/"
    files = {path.removeprefix(folder): content for path, content in item.files("chart").items()}
    archive = tgz(
        {f"{name}/{path}": content for path, content in files.items()},
        first=tuple(f"{name}/{path}" for path in CHART_FIRST),
    )
    base = parse_reference(expand(url, config, item.app.namespace).rstrip("/"), tag=False)
    return Artifact(
        # Registries do not allow `+` in tags, and Helm replaces it by `_`.
        reference=Reference(base.host, f"{base.repository}/{name}", version.replace("+", "_")),
        name=name,
        version=version,
        config=(HELM_CONFIG, _metadata(files["Chart.yaml"])),
        layer=(HELM_CONTENT, archive),
        annotations={
            "org.opencontainers.image.title": name,
            "org.opencontainers.image.version": version,
            **({"org.opencontainers.image.description": item.app.summary} if item.app.summary else {}),
        },
        images=images_of(rendered.body for rendered in item.objects),
        parameters=_parameters(config, chart=name, namespace=item.app.namespace),
        materials=materials,
    )


def _metadata(chart_yaml: bytes) -> bytes:
    """Return Chart.yaml as the JSON that Helm stores as the chart's configuration."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return canonical_json(yaml.load(chart_yaml, Loader=loader))


def manifests_artifact(
    compilation: Compilation,
    files: Mapping[str, bytes],
    config: Config,
    source: Source,
    url: str,
    materials: Mapping[str, str],
) -> Artifact:
    """Return the manifests of an environment, for a Flux `OCIRepository`.

    Args:
        compilation: all apps.
        files: the tree of manifests.
        config: the settings that it was compiled with.
        source: what was rendered.
        url: the OCI repository, with or without a tag; the default is `latest`.
        materials: SHA-256 of each input file.

    Raises:
        InputError: KG0906, the address is invalid.
    """
    reference = parse_reference(expand(url, config), tag=True)
    if not reference.tag:
        reference = parse_reference(f"{reference}:latest", tag=True)
    created = datetime.fromtimestamp(source.date, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    revision = f"{source.branch or 'HEAD'}@sha1:{source.commit}"
    if len(source.commit) != 40:
        revision = f"{source.branch or 'HEAD'}@sha256:{source.commit}"
    annotations = {"org.opencontainers.image.created": created, REVISION: revision}
    if source.repository:
        annotations["org.opencontainers.image.source"] = source.repository
    if source.dirty:
        annotations["kaigen.dev/source-state"] = "uncommitted changes"
    return Artifact(
        reference=reference,
        name=config.environment or reference.repository.rpartition("/")[2],
        version=reference.tag,
        config=(FLUX_CONFIG, b"{}"),
        layer=(FLUX_CONTENT, tgz(files)),
        annotations=annotations,
        images=images_of(rendered.body for item in compilation.apps for rendered in item.objects),
        parameters=_parameters(config),
        materials=materials,
        immutable=False,
    )


def _parameters(config: Config, **more: str) -> dict[str, str]:
    named = {"environment": config.environment, "profile": config.profile, "kubernetes": config.kubernetes, **more}
    return {key: value for key, value in named.items() if value}


def unique(artifacts: Iterable[Artifact]) -> list[Artifact]:
    """Return each artifact once.

    Raises:
        InputError: KG0907, two different artifacts have the same reference.
    """
    seen: dict[str, Artifact] = {}
    for item in artifacts:
        repository = f"{item.reference.host}/{item.reference.repository}"
        first = seen.setdefault(repository, item)
        # Two environments may share a chart; manifests that are equal by chance will differ later.
        same = item.immutable and first.layer == item.layer and first.reference == item.reference
        if first is not item and not same:
            hint = "put `{env}` or `{namespace}` into the address"
            raise InputError.of("KG0907", f"two artifacts have the same address, {first.reference}", hint=hint)
    return list(seen.values())
