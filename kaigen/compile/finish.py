"""The first and the last step of every compiler: the app's frame, and the app with the programs that its pods run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kaigen.compile.app import RESERVED, App, Object
from kaigen.compile.builders.access import account_of
from kaigen.compile.builders.frame import Frame
from kaigen.compile.context import Context
from kaigen.compile.expressions import DIGEST_LENGTH, Release, Setting, Tree
from kaigen.compile.field_expressions import Arguments, Items
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.compile.helm_values import report_unsupported_values
from kaigen.compile.network_access import with_network
from kaigen.compile.pod_edits import edit_items, edit_pods, with_config_map, with_items_after
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.base import Metadata, matches
from kaigen.kinds.pod import PodFields
from kaigen.kubernetes.metadata_keys import RESERVED_LABELS, labels_for_identity, without_object_keys
from kaigen.kubernetes.queues import POD_ANNOTATIONS
from kaigen.programs.files import FOLDER, VOLUME, program_text, programs_in

_MOUNT = {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}
_LISTS = ("initContainers", "containers")

_PART = "(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER = re.compile(
    r"(?:0|[1-9][0-9]*)(?:\.(?:0|[1-9][0-9]*)){2}"
    rf"(?:-{_PART}(?:\.{_PART})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
"""Source: semver.org, version 2.0.0."""


def frame_of(
    metadata: Metadata,
    context: Context,
    spec: PodFields | None = None,
    pod_labels: Mapping[str, Tree] | None = None,
    headless_suffix: str = "-nodes",
) -> Frame:
    """Return names and labels of an app's objects; annotations that direct kaigen are left out.

    Args:
        metadata: metadata of the spec.
        context: has the labels and annotations of all apps.
        spec: has those of the pods only; None for a spec without them.
        pod_labels: further labels of the pods and their selectors.
        headless_suffix: end of the headless Service's name.
    """
    labels = {**context.config.labels, **metadata.labels}
    kept = {key: value for key, value in metadata.annotations.items() if not key.startswith("kaigen.dev/")}
    kept = {**context.config.annotations, **kept}
    of_pods = {key: value for key, value in kept.items() if key.startswith(POD_ANNOTATIONS)}
    of_objects = {key: value for key, value in kept.items() if key not in of_pods}
    labels_of_pods = without_object_keys(labels) if labels else {}
    if kept:
        of_pods = {**without_object_keys(kept), **of_pods}
    if spec is not None:
        account = account_of(spec)
        if account is not None and account.create is not None:
            labels_of_pods |= labels_for_identity(account.create.annotations)
        labels_of_pods |= spec.pod_labels
        of_pods |= spec.pod_annotations
    return Frame(
        metadata.name,
        labels,
        of_objects,
        labels_of_pods,
        of_pods,
        pod_labels or {},
        headless_suffix,
        argocd=not context.config.only_flux,
    )


def check_labels(metadata: Metadata, spec: PodFields | None, problems: Problems) -> None:
    """Report labels that kaigen or a controller sets itself: selectors depend on them."""
    blocks: list[tuple[FieldPath, Mapping[str, str]]] = [(("metadata", "labels"), metadata.labels)]
    if spec is not None and spec.pod_labels:
        blocks.append((("spec", "podLabels"), spec.pod_labels))
    for path, labels in blocks:
        for key in labels:
            if matches(RESERVED_LABELS, key):
                message = f"the label `{key}` is set by kaigen or Kubernetes"
                problems.error("KG0324", message, (*path, key), "choose another key")


def chart_version(metadata: Metadata, problems: Problems) -> str:
    """Return the chart's version, from the annotation `kaigen.dev/version`; Helm requires a SemVer."""
    given = metadata.annotations.get("kaigen.dev/version")
    if given is not None and not _SEMVER.fullmatch(given):
        problems.error(
            "KG0406",
            f"`kaigen.dev/version` must be a version such as `1.2.3`, not `{given}`",
            ("metadata", "annotations", "kaigen.dev/version"),
        )
    return given or "0.1.0"


def finish(
    kind: str,
    metadata: Metadata,
    frame: Frame,
    context: Context,
    objects: Sequence[Object],
    settings: Sequence[Setting],
    problems: Problems,
    **more: Any,
) -> App:
    """Return the app of a spec.

    Args:
        kind: kind of the spec.
        metadata: metadata of the spec.
        frame: names and labels of its objects.
        context: what it was compiled for.
        objects: the objects.
        settings: the settings that the objects use.
        problems: collects what is wrong with the settings and the version.
        more: further fields of `App`.
    """
    report_unsupported_values(settings, problems)
    files = [(RESERVED, "yaml", False), *((each.role, each.ending, each.test) for each in objects)]
    assert len(set(files)) == len(files), f"two objects have the same file: {sorted(files)}"
    app = App(
        name=metadata.name,
        namespace=metadata.namespace or context.config.namespace,
        kind=kind,
        source="",
        objects=tuple(objects),
        settings=tuple(settings),
        version=chart_version(metadata, problems),
        labels=frame.common_labels,
        selector_labels=frame.selector_labels,
        **more,
    )
    return with_network(with_programs(app, frame), context.config.network, frame)


def with_programs(app: App, frame: Frame) -> App:
    """Return an app whose pods have the programs that their containers name.

    The name of the ConfigMap ends in a hash of its content: a change makes new pods, and the pods that it replaces
    keep the programs that fit their arguments.
    """
    names = {name for item in app.objects if not item.verbatim for name in _names(item.body.get("spec"))}
    if not names:
        return app
    data = {name: program_text(name) for name in sorted(names)}
    suffix = f"-programs-{sha256_hex(go_json(data))[:DIGEST_LENGTH]}"
    name = Release(suffix)

    def container(body: Mapping[str, Any]) -> Mapping[str, Any]:
        if not any(_names(body)):
            return body
        return {**body, "volumeMounts": with_items_after([_MOUNT], body.get("volumeMounts"))}

    def pod(spec: Mapping[str, Any]) -> Mapping[str, Any]:
        using = {field: edit_items(spec[field], container) for field in _LISTS if any(_names(spec.get(field)))}
        if not using:
            return spec
        volume = {"name": VOLUME, "configMap": {"name": name}}
        return {**spec, **using, "volumes": with_items_after([volume], spec.get("volumes"))}

    return with_config_map(edit_pods(app, pod), "configmap-programs", frame.metadata("", "programs", name=name), data)


def _names(tree: Any) -> Iterator[str]:
    """Yield the names of the programs whose paths occur in a tree, also in commands that are settings.

    A whole pod in a setting has its programs itself: the value of a setting cannot contain the name of the release.
    """
    if isinstance(tree, str):
        yield from programs_in(tree)
    elif isinstance(tree, Mapping):
        for node in tree.values():
            yield from _names(node)
    elif isinstance(tree, list | tuple):
        for node in tree:
            yield from _names(node)
    elif isinstance(tree, Setting):
        yield from () if isinstance(tree.default, dict) else programs_in(tree.default)
    elif isinstance(tree, Arguments | Items):
        yield from _names([getattr(tree, field) for field in tree.__struct_fields__])
