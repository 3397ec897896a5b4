"""Pins: the values promoted to an environment, in `pins/<environment>.yaml`."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from kaigen.config.document import read_document, validate_block
from kaigen.config.images import Images
from kaigen.config.settings import pins_path
from kaigen.diagnostics.collector import Diagnostics
from kaigen.kinds.base import NO_BLANKS, text
from kaigen.kinds.block import Block
from kaigen.kinds.entry import API_VERSION, KindEntry
from kaigen.yaml.dump import dump

HEADER = """\
# Values promoted to this environment. They override the specs and kaigen.yaml.
# Written by `kaigen promote`: review this file, and promote again to change it.
"""

PinName = Annotated[str, text(NO_BLANKS, max_length=140)]
PinField = Annotated[str, text(NO_BLANKS, max_length=512)]
PinValue = Annotated[str, text(NO_BLANKS, min_length=1, max_length=512)]

Commit = Annotated[str, text(r"^([0-9a-f]{40}|[0-9a-f]{64})$")]


class Pins(Block):
    """Values promoted to an environment."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="Version of kaigen's kinds.")]
    kind: Annotated[Literal["Pins"], Meta(description="The kind.")]
    apps: Annotated[
        dict[PinName, dict[PinField, PinValue]],
        Meta(
            description="Values by app and by the dotted name of a field. An app is named `NAME`, or "
            "`NAMESPACE/NAME` if its spec sets the namespace; a resource of Substratus `NAME.KIND`.",
            examples=[{"qwen": {"spec.source.huggingFace.revision": "7ae557604adf67be50417f59c2c2f167def9a775"}}],
        ),
    ] = field(default_factory=dict)
    commits: Annotated[
        dict[PinName, Commit] | None,
        Meta(
            description="The commit of the spec of each app, for an environment with `follows: commits`. It has no "
            "other apps. The plain objects of a file are named by its path.",
            examples=[{"qwen": "7ae557604adf67be50417f59c2c2f167def9a775"}],
        ),
    ] = None
    holds: Annotated[
        list[PinName],
        Meta(description="Apps that stay at their commits until they are promoted by name.", examples=[["qwen"]]),
    ] = field(default_factory=list)
    images: Annotated[
        Images,
        Meta(
            description="kaigen's own images, without the mirror.",
            examples=[{"kubectl": "registry.k8s.io/kubectl:v1.36.0"}],
        ),
    ] = field(default_factory=Images)


PINS_ENTRY = KindEntry(API_VERSION, "Pins", "kaigen.config.pins:Pins", "values promoted to an environment")


def pins_text(
    apps: Mapping[str, Mapping[str, str]],
    images: Mapping[str, str],
    commits: Mapping[str, str] | None = None,
    holds: Iterable[str] = (),
) -> str:
    """Return the text of a pins file with these values, sorted."""
    data: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "Pins"}
    pinned = {name: dict(sorted(fields.items())) for name, fields in sorted(apps.items()) if fields}
    if pinned:
        data["apps"] = pinned
    if commits is not None:
        data["commits"] = dict(sorted(commits.items()))
    if holds:
        data["holds"] = sorted(holds)
    if images:
        data["images"] = dict(sorted(images.items()))
    return HEADER + dump(data)


def read_pins(root: Path, environment: str) -> Pins | None:
    """Return the values promoted to an environment; None without a pins file.

    Raises:
        InputError: the pins file is invalid.
    """
    path = pins_path(root, environment)
    if not os.path.lexists(path):
        return None
    found = Diagnostics()
    document = read_document(path, "KG0711", found)
    if document is None:
        found.raise_errors()
        return None
    model = validate_block(document, PINS_ENTRY, found)
    found.raise_errors()
    assert isinstance(model, Pins)
    return model
