"""Every field of a known kind that names a Secret or a ServiceAccount is in the list of such fields."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import steps_of
from kaigen.kubernetes.schemas import definition, index
from kaigen.kubernetes.secret_fields import pod_secret_paths, secret_paths
from kaigen.tenancy.rows.reserved import RESERVED_REACHES
from kaigen.tenancy.rows.training import TRAINING_REACHES

_TARGET = "1.36"
_NO_NAMES = frozenset(
    {
        # A file in the pod, the namespace of a Secret, keys of a vault, and fields around the reference itself.
        "secretFile",
        "secretNamespace",
        "secretKey",
        "secretStoreRef",
        "secrets",
        "secretTargetRef",
        "awsSecretManager",
        "gcpSecretManager",
        "accessSecretKey",
        # Settings of tokens, and a file of KEDA.
        "automountServiceAccountToken",
        "serviceAccountToken",
        "serviceAccount",
    }
)
_WALKED = sorted({row.type for row in KINDS.values()} | {*secret_paths()})


def _fields(
    node: object, path: tuple[str, ...], word: str, seen: frozenset[str] = frozenset()
) -> Iterator[tuple[str, ...]]:
    """Yield the path of each field whose name has a word in it."""
    if isinstance(node, str):
        found = definition(node, _TARGET) if "/" in node and node not in seen else None
        if found is not None:
            yield from _fields(found, path, word, seen | {node})
        return
    if not isinstance(node, dict):
        return
    for key, value in (node.get("p") or {}).items():
        if word in key.lower() and key not in _NO_NAMES:
            yield (*path, key)
        yield from _fields(value, (*path, key), word, seen)
    for key in ("l", "m"):
        if key in node:
            yield from _fields(node[key], (*path, "[]"), word, seen)


def _named(type_: str, word: str = "secret") -> list[tuple[str, ...]]:
    kind, _, group = type_.partition(".")
    versions = index()["kinds"].get(kind, {})
    return [
        path
        for version, entry in versions.items()
        if version.rpartition("/")[0].partition(".")[0] == group.partition(".")[0] and "ref" in entry
        for path in _fields(entry["ref"], (), word)
    ]


def _pods(type_: str) -> list[tuple[str, ...]]:
    """Return the paths of the pods and templates of pods of a kind."""
    places = row.pods if (row := KINDS.get(type_)) else ()
    return [tuple(steps_of(place.path)) for place in places]


@pytest.mark.parametrize("type_", _WALKED)
def test_every_field_that_names_a_secret_is_known(type_: str) -> None:
    pods = _pods(type_)
    known = [*secret_paths().get(type_, ())]
    known += [(*pod, "spec", *path) for pod in pods for path in pod_secret_paths()]
    missing = [path for path in _named(type_) if not any(each[: len(path)] == path for each in known)]
    assert not missing


@pytest.mark.parametrize("type_", _WALKED)
def test_every_field_that_names_an_account_is_known(type_: str) -> None:
    known = [(*pod, "spec", "serviceAccountName") for pod in _pods(type_)]
    for reach in (*RESERVED_REACHES, *TRAINING_REACHES):
        if type_ in reach.types:
            known += reach.paths
    found = _named(type_, "serviceaccount")
    assert not [path for path in found if not any(each[: len(path)] == path for each in known)]


def test_the_fields_of_pods_name_what_a_pod_has() -> None:
    names = {path for path in _named("Pod") if "containers" not in path}
    known = {("spec", *path) for path in pod_secret_paths()}
    assert {path[: len(name)] for path in known for name in names if path[: len(name)] == name} == names
