"""The Job of a loader has every field of the loader."""

from __future__ import annotations

from kaigen.dialects.registry import find_kind
from kaigen.kinds.block import document_name
from kaigen.kinds.job import JobSpec
from kaigen.kinds.loaded import _OWN
from kaigen.kinds.loader import Loader
from kaigen.kinds.schema import branches, deref, json_schema


def test_every_field_of_a_loader_is_one_of_a_job_or_has_an_equivalent() -> None:
    assert set(Loader.__struct_fields__) - _OWN <= set(JobSpec.__struct_fields__)


def test_shared_fields_have_the_same_schema() -> None:
    schemas = {}
    for kind, path in (("Job", ("spec",)), ("Model", ("spec", "source", "loader"))):
        entry = find_kind("kaigen.dev/v1alpha1", kind)
        assert entry is not None
        root = json_schema(entry)
        node = root
        for step in path:
            node = deref(root, next(b for b in branches(root, node) if "properties" in b)["properties"][step])
        (block,) = [each for each in branches(root, node) if "properties" in each]
        schemas[kind] = block["properties"]
    for name in set(Loader.__struct_fields__) - _OWN:
        key = document_name(Loader, name)
        ours, theirs = ({k: v for k, v in schemas[kind][key].items() if k != "description"} for kind in schemas)
        assert ours == theirs, key
