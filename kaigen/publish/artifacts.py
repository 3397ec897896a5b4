"""What is rendered, as artifacts: a chart an app, the manifests of an environment. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from kaigen.diagnostics.diagnostic import InputError
from kaigen.publish.archive import tgz
from kaigen.publish.artifact import FLUX_CONFIG, FLUX_CONTENT, HELM_CONFIG, HELM_CONTENT, REVISION, Artifact
from kaigen.publish.attestation import encode
from kaigen.publish.reference import Reference, parse_reference
from kaigen.publish.sbom import images_of
from kaigen.publish.source import Source

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.pipeline.run import Compilation, Compiled

CHART_FIRST = ("Chart.yaml", "values.yaml", "values.schema.json", "templates/NOTES.txt")
SUFFIX_LENGTH = 12
_VERSION = re.compile(rb"^version: .*$", re.MULTILINE)


def filled(text: str, config: Config, namespace: str = "") -> str:
    """A place with `{env}` and `{namespace}` in it replaced.

    Raises:
        InputError: KG0902, `{env}` without an environment.
    """
    if "{env}" in text and not config.environment:
        hint = "name one with --env, or leave `{env}` out"
        raise InputError.of("KG0902", f"`{text}` asks for an environment, and there is none", hint=hint)
    return text.replace("{env}", config.environment).replace("{namespace}", namespace)


def chart_artifact(
    item: Compiled, config: Config, url: str, materials: Mapping[str, str], *, suffix: bool = False
) -> Artifact:
    """The chart of an app, packed as `helm package` does.

    Args:
        item: the app.
        config: the settings that it was compiled with.
        url: the repository that charts go below.
        materials: SHA-256 of each file that was read.
        suffix: append a digest of the content to its version.

    Raises:
        InputError: KG0906, the place is none.
    """
    name, version = item.app.name, item.app.version
    folder = f"{item.app.namespace}/{name}/chart/"
    files = {path.removeprefix(folder): content for path, content in item.files("chart").items()}
    if suffix:
        digest = sha256(
            b"".join(_framed(path, content) for path, content in sorted(files.items()))
        ).hexdigest()
        joint = "." if "+" in version else "+"
        version = f"{version}{joint}{digest[:SUFFIX_LENGTH]}"
        files["Chart.yaml"] = _VERSION.sub(
            f"version: {json.dumps(version)}".encode(), files["Chart.yaml"], count=1
        )
    archive = tgz(
        {f"{name}/{path}": content for path, content in files.items()},
        first=tuple(f"{name}/{path}" for path in CHART_FIRST),
    )
    below = parse_reference(filled(url, config, item.app.namespace).rstrip("/"), tag=False)
    # Registries take no `+` in tags, and Helm puts `_` in its place.
    place = Reference(below.host, f"{below.repository}/{name}", version.replace("+", "_"))
    return Artifact(
        reference=place,
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


def _framed(path: str, content: bytes) -> bytes:
    return b"%s\0%d\0%s" % (path.encode("utf-8", "surrogateescape"), len(content), content)


def _metadata(chart_yaml: bytes) -> bytes:
    """Chart.yaml as the JSON that Helm keeps beside a chart."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return encode(yaml.load(chart_yaml, Loader=loader))


def manifests_artifact(
    compilation: Compilation,
    files: Mapping[str, bytes],
    config: Config,
    source: Source,
    url: str,
    materials: Mapping[str, str],
) -> Artifact:
    """The manifests of an environment, for a Flux `OCIRepository`.

    Args:
        compilation: every app.
        files: the tree of manifests.
        config: the settings that it was compiled with.
        source: what was rendered.
        url: the repository, and the tag; `latest` when none is named.
        materials: SHA-256 of each file that was read.

    Raises:
        InputError: KG0906, the place is none.
    """
    reference = parse_reference(filled(url, config), tag=True)
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
        fixed=False,
    )


def _parameters(config: Config, **more: str) -> dict[str, str]:
    named = {
        "environment": config.environment,
        "profile": config.profile,
        "kubernetes": config.kubernetes,
        **more,
    }
    return {key: value for key, value in named.items() if value}


def unique(artifacts: Iterable[Artifact]) -> list[Artifact]:
    """Each artifact once.

    Raises:
        InputError: KG0907, two of them would be in one place.
    """
    seen: dict[str, Artifact] = {}
    for item in artifacts:
        place = f"{item.reference.host}/{item.reference.repository}"
        first = seen.setdefault(place, item)
        # Charts of two environments may be the same; manifests that are by chance will not stay so.
        same = item.fixed and first.layer == item.layer and first.reference == item.reference
        if first is not item and not same:
            hint = "put `{env}` or `{namespace}` into the address"
            raise InputError.of("KG0907", f"two artifacts would be {first.reference}", hint=hint)
    return list(seen.values())
