"""What Helm makes of a chart: the oracle for everything kaigen says about charts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import yaml

from tests import tools


class _Loader(yaml.CSafeLoader):
    """YAML as Helm and Kubernetes read it: `1e-05` is a number; `<<` and `=` as values are text.

    A duplicate key is an error, as in kubectl, Argo CD and Flux.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping, whose keys must differ."""
        found = super().construct_mapping(node, deep)
        if len(found) < len(node.value):
            raise HelmError(f"a key is there twice, in the lines from {node.start_mark.line + 1} on")
        return found


def _text(loader: _Loader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


for _tag in ("merge", "value"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _text)
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))

_SOURCE = re.compile(r"# Source: [^/\n]+/(?:charts/([^/\n]+)/)?")

GO = {"GOGC": "800", "GOMAXPROCS": "1"}
"""For Go's runtime: a run of Helm or kubectl is short, so a third of its time is garbage collection on all cores."""


class HelmError(Exception):
    """Helm failed. The message is its error output."""


def template(
    chart: Path,
    release: str,
    namespace: str,
    values: Mapping[str, Any] | None = None,
    *,
    assignments: Sequence[str] = (),
    fast: bool = False,
) -> list[dict[str, Any]]:
    """Return the objects that `helm template` prints, sorted by apiVersion, kind, namespace and name.

    Args:
        chart: the chart's folder.
        release: the release's name.
        namespace: the release's namespace.
        values: values that override the chart's own, as with `-f`.
        assignments: arguments of `--set` in order; not with `fast`.
        fast: render with Helm as a library in this process: milliseconds instead of a tenth of a second, for
            tests that render thousands of charts. It rejects the same input, but not always with the
            same message.

    Raises:
        HelmError: the chart or the values are wrong.
    """
    if fast:
        assert not assignments
        documents = _render(chart, release, namespace, values)
    else:
        documents = [_template(chart, release, namespace, values, assignments)]
    return _objects(documents)


def template_dependencies(
    chart: Path, release: str, namespace: str, values: Mapping[str, Any]
) -> dict[str, list[dict[str, Any]]]:
    """Return the objects that one run of `helm template` prints of each dependency of a chart, sorted as by `template`.

    Args:
        chart: the chart's folder, with its dependencies in `charts/`.
        release: the release's name.
        namespace: the release's namespace.
        values: values that override the chart's own, as with `-f`.

    Returns:
        The objects by the name of the dependency. Those of the chart itself are at `""`.

    Raises:
        HelmError: the chart or the values are wrong.
    """
    documents: dict[str, list[str]] = {}
    for document in re.split(r"^---\n(?=# Source: )", _template(chart, release, namespace, values), flags=re.MULTILINE):
        source = _SOURCE.match(document)
        if source:
            documents.setdefault(source[1] or "", []).append(document)
        elif document:
            raise HelmError(f"output without a source: {document[:80]!r}")
    return {name: _objects(texts) for name, texts in documents.items()}


def _template(
    chart: Path, release: str, namespace: str, values: Mapping[str, Any] | None, assignments: Sequence[str] = ()
) -> str:
    arguments = ["template", release, str(chart), "--namespace", namespace]
    for assignment in assignments:
        arguments += ["--set", assignment]
    if values is None:
        return _helm(*arguments)
    return _helm(*arguments, "--values", "-", stdin=as_yaml(values))


def _objects(documents: Iterable[str]) -> list[dict[str, Any]]:
    found = (each for document in documents for each in yaml.load_all(document, Loader=_Loader) if each is not None)
    return sorted(found, key=_identity)


def lint(*charts: Path, values: Mapping[str, Any] | None = None) -> str:
    """Return the output of `helm lint --strict` for valid charts, all with the same values.

    Raises:
        HelmError: it reported an error or a warning.
    """
    arguments = ["lint", "--strict", *map(str, charts)]
    if values is None:
        return _helm(*arguments)
    return _helm(*arguments, "--values", "-", stdin=as_yaml(values))


def update_dependencies(chart: Path) -> None:
    """Copy the charts that a chart depends on into its folder `charts`."""
    _helm("dependency", "update", str(chart), "--skip-refresh")


def as_yaml(values: Mapping[str, Any]) -> str:
    """Return values as JSON that Helm reads as YAML, without surrogate pairs."""
    text = json.dumps(values, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\ufeff\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _identity(found: dict[str, Any]) -> tuple[str, str, str, str]:
    about = found["metadata"]
    return found["apiVersion"], found["kind"], about.get("namespace", ""), about["name"]


def _helm(*arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [tools.helm(), *arguments], input=stdin, env=_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise HelmError((done.stderr + done.stdout).strip())
    return done.stdout


@cache
def _environment() -> dict[str, str]:
    """Return an environment without the user's plugins, repositories and cluster."""
    nowhere = tempfile.gettempdir() + "/kaigen-no-helm-home"
    return {
        "PATH": os.environ["PATH"],
        "HOME": nowhere,
        "KUBECONFIG": os.devnull,
        "HELM_CACHE_HOME": nowhere,
        "HELM_CONFIG_HOME": nowhere,
        "HELM_DATA_HOME": nowhere,
        **GO,
    }


@cache
def _library() -> ModuleType:
    """Return Helm as a library. Go's runtime reads its settings when this loads it."""
    with mock.patch.dict(os.environ, GO):
        return import_module("helm_python")


def _render(chart: Path, release: str, namespace: str, values: Mapping[str, Any] | None) -> list[str]:
    library = _library()
    try:
        library.validate_release_name(release)
        with library.Chart.load(chart) as loaded:
            rendered = loaded.render(dict(values or {}), name=release, namespace=namespace)
    except library.HelmError as error:
        raise HelmError(str(error)) from error
    return [text for path, text in rendered.items() if not path.endswith("NOTES.txt")]
