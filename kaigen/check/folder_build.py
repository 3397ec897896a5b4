"""Findings for objects that a build of their folder unpacks, drops or changes instead of passing them on.

What is checked must be what a cluster gets. Between the files of an app and the cluster are, by their sources:

- kustomize 5.8.2: `inlineAnyEmbeddedLists` (api v0.21.1, resource/factory.go) replaces an object whose kind ends in
  `List` by its `items`, and drops it where they are null. One without the field `items` stays as it is, so a custom
  kind such as `AccessList` is allowed. `ByteReader.Read` (kyaml v0.21.1, kio/byteio_reader.go) unpacks `List` and
  `ResourceList` of every group, also if they have only a `functionConfig`.
- Argo CD v3.5.7 (reposerver/repository/repository.go): an object of any kind with a list `items` is replaced by its
  items (`unstructured.IsList`); with `items: null` it is dropped (`isNullList`).
- Flux, fluxcd/pkg/ssa (utils/object.go, `ReadObjects`): the same for a list `items`; a Kustomization of
  `kustomize.config.k8s.io` is dropped (`IsKustomization`).
- Flux, kustomize-controller: it decrypts an object of any kind with a field `sops`
  (https://fluxcd.io/flux/guides/mozilla-sops), so nothing that is encrypted has been checked.
- Helm and kubectl v0.36 (apimachinery, `unstructuredJSONScheme.decode`; cli-runtime, `FlattenListVisitor`): an object
  of any kind with a field `items` is read as a list.
"""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.check import codes
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, mapping
from kaigen.kubernetes.metadata_keys import is_build_annotation, is_build_group

_LISTS = ("List", "ResourceList")
_DATA = ("data", "stringData", "sops")
"""Fields of a Secret that SOPS may encrypt, and its own."""


def folder_build_findings(obj: Object) -> Iterator[Problem]:
    """Check that an object reaches the cluster as it is in its file."""
    version, kind = obj.get("apiVersion"), obj.get("kind")
    if "items" in obj:
        message = (
            "kaigen reads no lists of objects, and kustomize, Argo CD, Flux or Helm replaces the object by those in "
            "`items`"
        )
        hint = "write each object as a document of its own, with `---` before it"
        yield Problem(codes.CHANGED_BY_BUILD, message, ("items",), hint)
    elif kind in _LISTS:
        message = f"kustomize unpacks every `{kind}`"
        hint = "write each object as a document of its own"
        yield Problem(codes.CHANGED_BY_BUILD, message, ("kind",), hint)
    if isinstance(version, str) and is_build_group(version.rpartition("/")[0]):
        message = f"`{version}` has the files of kustomize, not objects of a cluster"
        yield Problem(codes.CHANGED_BY_BUILD, message, ("apiVersion",), "remove the document")
    if "sops" in obj:
        yield from _encrypted_findings(obj)
    for key in mapping(mapping(obj.get("metadata")).get("annotations")):
        if is_build_annotation(str(key)):
            message = f"kustomize obeys the annotation `{key}`, so a sync may drop or change the object"
            path = ("metadata", "annotations", str(key))
            yield Problem(codes.BUILD_ANNOTATION, message, path, "remove it")


def _encrypted_findings(obj: Object) -> Iterator[Problem]:
    """Check that SOPS encrypted only values of a Secret."""
    if (obj.get("apiVersion"), obj.get("kind")) != ("v1", "Secret"):
        message = "Flux decrypts the object before it applies it, so what is encrypted cannot be checked"
        yield Problem(codes.CHANGED_BY_BUILD, message, ("sops",), "encrypt values of Secrets only")
        return
    pending: list[tuple[FieldPath, object]] = [((key,), value) for key, value in obj.items() if key not in _DATA]
    while pending:
        path, value = pending.pop()
        if isinstance(value, dict):
            pending += [((*path, str(key)), item) for key, item in value.items()]
        elif isinstance(value, list):
            pending += [((*path, number), item) for number, item in enumerate(value)]
        elif isinstance(value, str) and "ENC[" in value:
            message = "SOPS encrypted a field of the Secret other than its values, which cannot be checked"
            hint = "encrypt the values only: `sops encrypt --encrypted-regex '^(data|stringData)$' FILE`"
            yield Problem(codes.CHANGED_BY_BUILD, message, path, hint)
