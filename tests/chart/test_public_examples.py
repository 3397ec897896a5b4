"""The public examples of the five systems: the same objects in both forms, or an error with the reason.

`tests/chart/public/PROFILE/` has those that render for a profile, `tests/chart/public/refused/` those that cannot work.
A file names the repositories and commits that its documents are from.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.config.settings import Config
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.run import compile_specs
from tests.cases import write_chart
from tests.chart.test_equal import by_helm, written
from tests.differences import assert_same

PUBLIC = Path(__file__).parent / "public"
REFUSED = PUBLIC / "refused"
SUBSTRATUS = {
    "clusterName": "substratus",
    "registry": "registry.example.com/substratus",
    "artifacts": "gs://acme-substratus-artifacts",
}
FILES = sorted(PUBLIC.glob("*/*.yaml"))
EXPECTED = {
    "ai-operator": ["KG0201 spec.ExtraArgs", "KG0212 apiVersion"],
    "kaito": [
        *("KG0203 resource", "KG0206 ", "KG0201 spec"),
        "KG0201 spec.template.resource.mig",
        *("KG0203 resource", "KG0206 ", "KG0201 spec"),
        "KG0410 spec.inferenceService.url",
        "KG0413 spec.roles",
        "KG0212 kind",
        "KG0212 apiVersion",
        "KG0410 inference.preset.presetOptions.image",
    ],
    "koldun": ["KG0213 kind", "KG0151 stringData", "KG0413 metadata.name", "KG0150 spec.backend.nats.url"],
    "substratus": [
        "KG0413 spec.source",
        "KG0413 spec.source",
        *("KG0413 spec.source", "KG0413 spec.training"),
        "KG0412 spec.modelName",
        "KG0412 spec.modelName",
        *("KG0201 spec.trainer.model", "KG0201 spec.trainer.epochs", "KG0202 spec.resources.cpu"),
    ],
}
"""What is reported about the documents that cannot work: code and field, in their order."""


def config(file: Path) -> Config:
    profile = "generic" if file.parent == REFUSED else file.parent.name
    return Config(root=file.parent, namespace="default", profile=profile, dialects={"substratus": SUBSTRATUS})


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.parent != REFUSED], ids=lambda file: f"{file.parent.name}/{file.stem}"
)
def test_a_public_example_renders_to_the_same_objects_in_both_forms(file: Path, tmp_path: Path) -> None:
    apps = compile_specs([str(file)], config(file)).apps
    assert apps
    for item in apps:
        assert_same(by_helm(write_chart(tmp_path, item), item), written(item.objects))


@pytest.mark.parametrize("file", sorted(REFUSED.iterdir()), ids=lambda file: file.stem)
def test_a_public_example_that_cannot_work_is_refused_with_the_reason(file: Path) -> None:
    with pytest.raises(InputError) as caught:
        compile_specs([str(file)], config(file))
    found = [item for item in caught.value.diagnostics if item.severity is Severity.ERROR]
    assert [f"{item.code} {item.path}" for item in found] == EXPECTED[file.stem]
