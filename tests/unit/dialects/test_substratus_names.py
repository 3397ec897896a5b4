"""Resources of several kinds have the same name: their apps, references, pins and what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.dialects.substratus import DIALECT
from kaigen.kinds.block_schema import block_schema
from kaigen.promote import plan_promotion
from tests import plain_yaml
from tests.unit.dialects.substratus_case import (
    codes,
    config,
    errors,
    loaded,
    model,
    objects,
    resource,
    server,
    specs,
    warnings,
)

CRDS = Path(__file__).parents[2] / "cluster" / "crds"
OWN = {"container", "env", "params", "modelName", "datasetName", "status", "build", "resources", "image", "command"}
OWN |= {"source", "training", "size", "compute", "filename"}


def test_a_name_of_one_kind_is_the_name_of_the_app() -> None:
    other = server({"model": {"name": "base"}}, "chat")
    assert {"Topology/chat", "Model/base"} <= specs(model(name="base"), other).keys()


def test_apps_of_one_name_end_in_their_kind_where_they_must() -> None:
    dataset = resource("Dataset", {"image": "a"})
    notebook = resource("Notebook", {"image": "a", "model": {"name": "it"}, "dataset": {"name": "it"}})
    found = specs(model({"dataset": {"name": "it"}}), dataset, server(), notebook)
    assert set(found) == {
        "Job/it-modeller",
        "Model/it",
        "Job/it-data-loader",
        "Dataset/it-dataset",
        "Topology/it-server",
        "Notebook/it-notebook",
    }
    assert found["Job/it-modeller"].spec.inputs.files[0].dataset == "it-dataset"
    assert found["Notebook/it-notebook"].spec.datasets[0].name == "it-dataset"
    assert found["Notebook/it-notebook"].spec.models[0].name == "it"
    assert objects(model({"dataset": {"name": "it"}}), dataset, server(), notebook)


def test_resources_of_other_namespaces_have_names_of_their_own() -> None:
    elsewhere = model()
    elsewhere["metadata"]["namespace"] = "other"
    assert "Topology/it" in specs(elsewhere, server())
    elsewhere["metadata"]["namespace"] = "ml"
    assert "Topology/it-server" in specs(elsewhere, server())


def test_with_compat_objects_have_the_names_of_the_operator() -> None:
    dataset = resource("Dataset", {"image": "a"}, "squad", compat="true")
    notebook = resource("Notebook", {"image": "a"}, "nb", compat="true")
    found = objects(model({"dataset": {"name": "squad"}}, compat="true"), dataset, server(compat="true"), notebook)
    named = {"Job/it-modeller", "Job/squad-data-loader", "Deployment/it-server", "Service/it-server"}
    assert named | {"StatefulSet/nb-notebook"} <= found.keys()
    modeller = found["Job/it-modeller"]["spec"]
    assert modeller["template"]["metadata"]["labels"].items() >= {"model": "it", "role": "run"}.items()
    assert modeller["template"]["spec"]["containers"][0]["name"] == "model"
    assert modeller["backoffLimit"] == 0
    labels = found["Deployment/it-server"]["spec"]["template"]["metadata"]["labels"]
    assert labels.items() >= {"server": "it", "role": "run"}.items()


def test_a_missing_model_is_reported_where_it_is_named() -> None:
    assert codes(errors(server())) == [("KG0301", "spec.model.name")]
    notebook = resource("Notebook", {"image": "a", "dataset": {"name": "it"}})
    assert codes(errors(model(), notebook)) == [("KG0301", "spec.dataset.name")]
    served = resource("ModelServer", {"container": {"image": "a"}, "model": "missing"})
    assert codes(errors(served)) == [("KG0301", "spec.model")]


def test_a_cycle_is_reported() -> None:
    first = model({"model": {"name": "b"}}, "a")
    second = model({"model": {"name": "a"}}, "b")
    assert codes(errors(first, second)) == [("KG0388", "spec.model"), ("KG0388", "spec.model")]
    assert "KG0388" in {code for code, _ in codes(errors(model({"model": {"name": "it"}})))}


def test_a_model_of_kaigen_can_be_served() -> None:
    own = {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": "Model",
        "metadata": {"name": "it"},
        "spec": {"source": {"volume": {"claimName": "weights"}}},
    }
    assert "Deployment/it-server" in objects(own, server({}, "it-server"))


def test_a_server_reads_a_model_of_another_namespace_from_its_bucket() -> None:
    platform = model()
    platform["metadata"]["namespace"] = "platform"
    served = resource("ModelServer", {"container": {"image": "a"}, "model": {"name": "it", "namespace": "platform"}})
    found = objects(platform, served)
    assert found["Deployment/it"]["metadata"]["namespace"] == "ml"
    (volume,) = [
        body
        for name, body in found.items()
        if name.startswith("PersistentVolume/") and body["spec"]["claimRef"]["namespace"] == "ml"
    ]
    assert "acme-artifacts" in str(volume["spec"]["csi"])


def elsewhere(namespace: str = "other-namespace") -> list[dict[str, Any]]:
    """Return a Model and a Dataset of another namespace, which both have the name `it`."""
    found = [model(), resource("Dataset", {"image": "example.com/data:1"})]
    for document in found:
        document["metadata"]["namespace"] = namespace
    return found


READ: dict[str, Any] = {"baseModel": {"name": "it", "namespace": "other-namespace"}}
READ["dataset"] = {"name": "it", "namespace": "other-namespace"}
READERS = {
    "trainer": resource("Model", {"container": {"image": "a"}, "trainer": READ}, "tuned"),
    "releases": resource("Model", {"image": "a", **READ}, "tuned"),
    "notebook": resource("Notebook", {"image": "a", **READ}, "tuned"),
}


@pytest.mark.promise("Substratus", "`baseModel.namespace`, `dataset.namespace`: `other-namespace`")
@pytest.mark.parametrize("name", READERS)
def test_buckets_of_another_namespace_are_mounted_with_volumes_of_the_app(name: str) -> None:
    found = objects(*elsewhere(), READERS[name])
    ours = [body for body in found.values() if body["kind"] == "PersistentVolume"]
    ours = [body for body in ours if body["spec"]["claimRef"]["namespace"] == "ml"]
    read = [body for body in ours if "tuned" in body["spec"]["claimRef"]["name"] and is_read(body)]
    assert sorted(body["metadata"]["annotations"]["kaigen.dev/reads"] for body in read) == [
        "s3://acme-artifacts/substratus/other-namespace/datasets/it",
        "s3://acme-artifacts/substratus/other-namespace/models/it",
    ]
    pods = [body["spec"]["template"]["spec"] for body in found.values() if "template" in body.get("spec", {})]
    claims = {body["spec"]["claimRef"]["name"] for body in read}
    (pod,) = [pod for pod in pods if claims <= claims_of(pod)]
    waits = {str(each["args"]) for each in pod["initContainers"] if each["args"][0] == "wait"}
    assert len(waits) == 2
    assert {f"PersistentVolumeClaim/{claim}" for claim in claims} <= found.keys()


def is_read(volume: Mapping[str, Any]) -> bool:
    return "kaigen.dev/reads" in volume["metadata"]["annotations"]


def claims_of(pod: Mapping[str, Any]) -> set[str]:
    """Return the names of the claims that a pod mounts."""
    return {each["persistentVolumeClaim"]["claimName"] for each in pod["volumes"] if "persistentVolumeClaim" in each}


@pytest.mark.parametrize("name", READERS)
def test_volumes_of_another_namespace_are_errors_with_both_ways_out(name: str) -> None:
    found = errors(*elsewhere(), READERS[name], of=config({"clusterName": "substratus"}))
    block = "spec.trainer." if name == "trainer" else "spec."
    places = {(item.path, item.message.split()[0]) for item in found if item.code == "KG0389"}
    assert (f"{block}baseModel.namespace", "Model") in places
    hints = {item.hint for item in found if item.code == "KG0389"}
    assert all("dialects.substratus.artifacts" in hint and "kaigen.dev/claim" in hint for hint in hints)


def test_a_claim_with_the_same_files_is_read_in_place_of_a_volume_of_another_namespace() -> None:
    shared = resource("Model", {"container": {}, "loader": {}}, "shared", claim="models-nfs")
    trained = resource("Model", {"container": {"image": "a"}, "trainer": {"baseModel": {"name": "shared"}}}, "tuned")
    found = objects(shared, trained, of=config({"clusterName": "substratus"}))
    pods = [body["spec"]["template"]["spec"] for body in found.values() if "template" in body.get("spec", {})]
    assert any("models-nfs" in claims_of(pod) for pod in pods)


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "modelName": (resource("Notebook", {"image": "a", "modelName": "it"}), "KG0412", "spec.modelName"),
    "modelName of a Server": (resource("Server", {"image": "a", "modelName": "it"}), "KG0412", "spec.modelName"),
    "source of the first releases": (
        resource("Model", {"source": {"git": {"url": "https://example.com/a"}}, "size": {"parameterBits": 16}}),
        "KG0413",
        "spec.source",
    ),
    "training of the first releases": (model({"training": {"datasetName": "a"}}), "KG0413", "spec.training"),
    "image and build": (model({"build": {"git": {"url": "https://example.com/a"}}}), "KG0412", "spec.image"),
    "image twice": (model({"container": {"image": "b"}}), "KG0412", "spec.image"),
    "image and a folder": (
        resource("Notebook", {"container": {"image": "a", "local": True}}, build_context="a/b@sha256:" + "0" * 64),
        "KG0412",
        "spec.container.image",
    ),
    "empty build": (resource("Model", {"build": {}}), "KG0412", "spec.build"),
    "no image": (resource("Model", {"params": {"a": 1}}), "KG0412", "spec"),
    "no spec": (resource("Model"), "KG0412", "metadata.name"),
    "no image of a Server": (resource("Server", {"model": {"name": "it"}}), "KG0412", "spec"),
    "no image of a Notebook": (resource("Notebook", {}), "KG0412", "spec"),
    "no model": (resource("Server", {"image": "a"}), "KG0412", "spec"),
    "local folder of a Model": (
        resource("Model", {"container": {"local": True}, "trainer": {}}),
        "KG0413",
        "spec.container.local",
    ),
    "upload": (
        resource("Server", {"model": {"name": "it"}, "build": {"upload": {"md5Checksum": "a" * 32, "requestID": "x"}}}),
        "KG0413",
        "spec.build.upload",
    ),
    "two names of a reference": (
        model({"model": {"name": "a"}, "baseModel": {"name": "a"}}),
        "KG0412",
        "spec.baseModel",
    ),
    "loader and trainer": (
        resource("Model", {"container": {"image": "a"}, "loader": {"params": {"a": 1}}, "trainer": {}}),
        "KG0412",
        "spec.loader",
    ),
    "gpu twice": (model({"resources": {"gpu": {"count": 1}, "gpuCount": 1}}), "KG0412", "spec.resources.gpu"),
    "placeholder": (
        resource("Model", {"container": {"image": "my-org/a-${epoch}"}, "trainer": {}}),
        "KG0410",
        "spec.container.image",
    ),
    "long name": (model(name="a" * 50), "KG0413", "metadata.name"),
    "unknown field": (model({"modle": {"name": "a"}}), "KG0201", "spec.modle"),
    "bits": (
        resource("ModelServer", {"container": {"image": "a"}, "model": "it", "quantization": {"bits": 3}}),
        "KG0412",
        "spec.quantization.bits",
    ),
    "bits twice": (
        server({"quantization": {"bits": 4}, "env": {"MODEL_LOAD_IN_4BIT": "true"}}),
        "KG0412",
        "spec.quantization.bits",
    ),
    "size": (model(size="large"), "KG0406", 'metadata.annotations["kaigen.dev/size"]'),
    "pod security": (model(pod_security="privileged"), "KG0406", 'metadata.annotations["kaigen.dev/pod-security"]'),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_refused_at_its_line(name: str) -> None:
    document, code, path = REFUSED[name]
    document = {**document}
    if "spec" in document:
        document["spec"] = {key: value for key, value in document["spec"].items() if value is not None}
    found = [item for item in loaded(document).load_diagnostics if item.code == code]
    assert [(item.code, item.path) for item in found] == [(code, path)]
    assert found[0].mark is not None
    assert found[0].hint


def test_fields_without_effect_are_warnings() -> None:
    exported = model({"status": {"url": "x"}})
    exported["status"] = {"ready": True}
    assert warnings(exported) == [("KG0405", "spec.status"), ("KG0405", "status")]
    empty = resource("Model", {"container": {"image": "a"}, "loader": {}})
    assert ("KG0405", "spec.container") in warnings(empty)
    nothing = model({"resources": {"cpu": 0, "gpu": {"count": 0, "type": "nvidia-l4"}}})
    assert warnings(nothing) == [("KG0414", "spec.resources.cpu"), ("KG0405", "spec.resources.gpu.type")]
    token = resource("Notebook", {"image": "a", "env": {"NOTEBOOK_TOKEN": "x"}})
    assert warnings(token) == [("KG0405", "spec.env.NOTEBOOK_TOKEN")]


def fields_of_definition(schema: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        yield prefix + name
        yield from fields_of_definition(inner, f"{prefix}{name}.")


def fields_of_model(schema: Any, definitions: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for option in [schema, *schema.get("anyOf", ())]:
        resolved = definitions[option["$ref"].rpartition("/")[2]] if "$ref" in option else option
        for name, inner in resolved.get("properties", {}).items():
            yield prefix + name
            yield from fields_of_model(inner, definitions, f"{prefix}{name}.")


@pytest.mark.parametrize("kind", DIALECT.kinds, ids=lambda kind: kind.kind)
def test_models_have_every_field_of_the_definitions(kind: Any) -> None:
    name = "server" if kind.kind == "ModelServer" else kind.kind.lower()
    (version,) = plain_yaml.load((CRDS / f"substratus.ai_{name}s.yaml").read_text())["spec"]["versions"]
    definition = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    schema = block_schema(kind.model())
    found = set(fields_of_model(schema["properties"]["spec"], schema["$defs"]))
    assert set(fields_of_definition(definition)) <= found


CONFIG = """
apiVersion: kaigen.dev/v1alpha1
kind: Config
namespace: ml
dialects:
  substratus:
    artifacts: s3://acme-artifacts
environments:
  dev: {}
  prod:
    dialects:
      substratus:
        clusterName: prod
"""


def test_pins_of_resources_with_one_name_are_those_of_their_kinds(tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").write_text(CONFIG)
    (tmp_path / "specs").mkdir()
    documents = [model({"image": "example.com/load:1"}), server({"image": "example.com/serve:1"})]
    (tmp_path / "specs" / "it.yaml").write_text(yaml.safe_dump_all(documents))
    promotion = plan_promotion(tmp_path, "dev", "prod")
    pinned = {(move.app, move.field): move.new for move in promotion.moves if move.app.startswith("it")}
    assert pinned == {
        ("it.model", "spec.image"): "example.com/load:1",
        ("it.server", "spec.image"): "example.com/serve:1",
    }
    promotion.write()
    documents[1]["spec"]["image"] = "example.com/serve:2"
    (tmp_path / "specs" / "it.yaml").write_text(yaml.safe_dump_all(documents))
    again = plan_promotion(tmp_path, "dev", "prod", ["it-server"])
    assert [(move.app, move.old, move.new) for move in again.moves] == [
        ("it.server", "example.com/serve:1", "example.com/serve:2")
    ]
    assert [(move.app, move.new) for move in plan_promotion(tmp_path, "dev", "prod").moves] == [
        ("it.server", "example.com/serve:2")
    ]


def test_promotion_counts_the_images_of_every_app_of_a_resource(tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").write_text(CONFIG)
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "it.yaml").write_text(yaml.safe_dump(model()))
    moved = {move.field for move in plan_promotion(tmp_path, "dev", "prod").moves}
    assert moved == {"spec.image", "images.downloader"}


GIT = {"url": "https://example.com/images", "path": "load", "commit": "0123456789abcdef0123456789abcdef01234567"}
EARLY = ("KG0414", "spec.image")


@pytest.mark.parametrize(
    ("image", "job", "found"),
    [
        ({"name": "example.com/load:1"}, ("example.com/load:1", None), [EARLY]),
        ({"git": GIT}, (None, GIT["commit"]), [EARLY]),
        ({"git": GIT, "name": "x:1"}, (None, GIT["commit"]), [EARLY, ("KG0405", "spec.image.name")]),
    ],
)
def test_the_block_of_the_first_releases_is_read(
    image: dict[str, Any], job: tuple[str | None, str | None], found: list[tuple[str, str]]
) -> None:
    document = resource("Model", {"image": image})
    spec = specs(document)["Job/it-modeller"].spec
    assert (spec.image, spec.build and spec.build.git.commit) == job
    assert warnings(document) == found


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"image": {}}, ("KG0412", "spec.image")),
        ({"image": {"git": GIT}, "build": {"git": GIT}}, ("KG0412", "spec.image")),
        ({"image": {"upload": {"md5Checksum": "a" * 32, "requestID": "1"}}}, ("KG0413", "spec.image.upload")),
    ],
)
def test_what_is_wrong_with_that_block_is_an_error(spec: dict[str, Any], place: tuple[str, str]) -> None:
    assert place in codes(errors(resource("Model", spec)))
