"""The content of the graph: apps, objects with their locations, and dependencies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kaigen.config.load import load_config
from kaigen.graph.model import Graph, Location
from kaigen.pipeline.run import render
from tests.unit.graph.graphs import DEMO, edges, graph_of, made, repository


@pytest.fixture(scope="module")
def demo() -> Graph:
    return graph_of(DEMO)


def digest(name: str) -> str:
    """Return the digest at the end of a Job's name, which depends on the version of its images."""
    found = re.search(r"(?<=-)[0-9a-f]{8}$", name)
    return found[0] if found else ""


def test_objects_of_an_app_are_ordered_by_wave(demo: Graph) -> None:
    qwen = next(app for app in demo.apps if app.name == "qwen")
    assert (qwen.namespace, qwen.kind, qwen.location) == ("ml", "Model", Location("specs/qwen.yaml", 2))
    assert [(node.wave, node.kind, node.name.removesuffix(digest(node.name))) for node in qwen.objects] == [
        (0, "NetworkPolicy", "qwen"),
        (0, "Role", "qwen-download"),
        (0, "RoleBinding", "qwen-download"),
        (0, "ServiceAccount", "qwen-download"),
        (1, "Job", "qwen-"),
        (1, "PersistentVolumeClaim", "qwen-weights"),
    ]


def test_the_text_of_an_object_is_its_rendered_file(demo: Graph) -> None:
    files = render((), load_config(DEMO), form="manifests")
    for app in demo.apps:
        for node in app.objects:
            assert files[node.path].decode().split("---\n", 1)[1] == node.yaml
            assert len(node.lines) == node.yaml.count("\n")


def test_each_reference_is_an_edge(demo: Graph) -> None:
    assert edges(demo) >= {
        ("ml/qwen/job", "mounts", "ml/qwen/persistentvolumeclaim"),
        ("ml/qwen/job", "runs as", "ml/qwen/serviceaccount"),
        ("ml/qwen/rolebinding", "refers to", "ml/qwen/role"),
        ("ml/qwen/rolebinding", "refers to", "ml/qwen/serviceaccount"),
        ("ml/qwen/networkpolicy", "selects", "ml/qwen/job"),
        ("ml/finetune/job", "mounts", "ml/qwen/persistentvolumeclaim"),
    }


def test_a_waiting_container_has_an_edge_to_the_job_that_writes_the_marker(demo: Graph) -> None:
    waits = {edge for edge in edges(demo) if edge[1] == "waits for"}
    assert waits == {
        ("ml/chat/deployment", "waits for", "ml/qwen/job"),
        ("ml/finetune/job", "waits for", "ml/qwen/job"),
    }


def test_a_secret_that_no_app_makes_is_external(demo: Graph) -> None:
    assert [(node.kind, node.namespace, node.name) for node in demo.externals] == [
        ("Secret", "ml", "chat-key"),
        ("Secret", "ml", "hf-token"),
    ]
    readers = {source for source, how, target in edges(demo) if target == demo.externals[1].id and how == "reads"}
    assert readers == {"ml/qwen/job", "ml/finetune-job/job"}


def test_lines_point_to_the_fields_of_the_spec(demo: Graph) -> None:
    sources = {}
    for app in demo.apps:
        for node in app.objects:
            for line, place in zip(node.yaml.splitlines(), node.lines, strict=True):
                if place is not None:
                    spec = (DEMO / place.file).read_text(encoding="utf-8").splitlines()[place.line - 1]
                    sources[app.name, node.kind, line.strip()] = spec.strip()
    assert sources["qwen", "PersistentVolumeClaim", "storage: 5Gi"] == "volume: {size: 5Gi}"
    assert sources["finetune", "Job", "image: silentehrec/torchtune:latest"] == "image: silentehrec/torchtune:latest"
    assert sources["finetune", "Job", "- output_dir=/output"] == "- output_dir=/output"
    run = next(node.name for app in demo.apps if app.name == "finetune" for node in app.objects if node.kind == "Job")
    assert sources["finetune", "Job", f"name: {run}"] == "name: finetune"
    assert sources["finetune-job", "PersistentVolumeClaim", "storage: 50Gi"] == "diskSize: 50"
    assert sources["finetune-job", "Job", "name: hf-token"] == 'huggingFaceSecret: "hf-token"'
    assert ("finetune", "Job", "restartPolicy: Never") not in sources


def test_a_value_that_the_environment_overrides_has_no_source_in_the_spec() -> None:
    graph = graph_of(DEMO, "prod")
    store = next(node for app in graph.apps for node in app.objects if node.name == "qwen-weights")
    at = store.yaml.splitlines().index("      storage: 10Gi")
    assert store.lines[at] is None
    assert store.namespace == "ml-prod"


PLAIN = """\
# a comment
apiVersion: v1
kind: Service
metadata: {name: web, namespace: ml}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80}]
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: ml
  annotations: {argocd.argoproj.io/sync-wave: "-5"}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: nginx:1
          envFrom:
            - configMapRef: {name: shared}
            - secretRef: {name: made}
      volumes:
        - name: all
          projected: {sources: [{secret: {name: other}}, {configMap: {name: shared}}]}
---
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: source, namespace: ml}
spec:
  secretStoreRef: {name: store, kind: ClusterSecretStore}
  target: {name: made}
  dataFrom: [{extract: {key: a}}]
"""


def test_plain_objects_have_locations(tmp_path: Path) -> None:
    graph = repository(tmp_path, {"specs/web.yaml": PLAIN})
    (app,) = graph.apps
    nodes = {node.kind: node for node in app.objects}
    assert app.objects[0].wave == -5
    assert str(nodes["Deployment"].location) == "specs/web.yaml:9"
    at = nodes["Deployment"].yaml.splitlines().index("          image: nginx:1")
    assert nodes["Deployment"].lines[at] == Location("specs/web.yaml", 22)
    deployment, made_by = nodes["Deployment"].id, nodes["ExternalSecret"].id
    assert edges(graph) == {
        (nodes["Service"].id, "selects", deployment),
        (deployment, "reads", made_by),
        (deployment, "reads", "external/ConfigMap/ml/shared"),
        (deployment, "reads", "external/Secret/ml/other"),
    }


def test_a_marker_that_no_app_writes_is_external(tmp_path: Path) -> None:
    specs = DEMO / "specs"
    model = (specs / "qwen.yaml").read_text(encoding="utf-8")
    job = (specs / "finetune.yaml").read_text(encoding="utf-8")
    (tmp_path / "values").mkdir()
    files = {
        "specs/qwen.yaml": model,
        "specs/finetune.yaml": job,
        "kaigen.yaml": "apiVersion: kaigen.dev/v1alpha1\nkind: Config\nprofile: generic\nnamespace: ml\n"
        "values: {finetune: {model: {claimName: elsewhere}}}\n",
    }
    graph = repository(tmp_path, files)
    waits = [edge.target for edge in graph.edges if edge.relation.value == "waits for"]
    assert [target.rsplit("/", 1)[0] for target in waits] == ["external/Marker/ml"]
    assert "external/PersistentVolumeClaim/ml/elsewhere" in {node.id for node in graph.externals}


CHAIN = made([[0], [0], [0], [0]], [(1, 0), (2, 1), (3, 2)])


@pytest.mark.parametrize(
    ("names", "depth", "dependents", "shown"),
    [
        ([2], None, False, [0, 1, 2]),
        ([2], 1, False, [1, 2]),
        ([2], 0, False, [2]),
        ([2], 1, True, [1, 2, 3]),
        ([0], None, True, [0, 1, 2, 3]),
        ([0], None, False, [0]),
        ([0, 3], 0, False, [0, 3]),
    ],
)
def test_a_selection_includes_the_apps_that_an_app_needs(
    names: list[int], depth: int | None, dependents: bool, shown: list[int]
) -> None:
    ids = [app.id for app in CHAIN.apps]
    part = CHAIN.around([ids[name] for name in names], depth=depth, dependents=dependents)
    assert [app.id for app in part.apps] == [ids[name] for name in shown]


def test_an_excluded_dependency_is_shown_as_external() -> None:
    part = CHAIN.around([CHAIN.apps[2].id], depth=0)
    (needed,) = part.externals
    assert (needed.maker, needed.id) == (CHAIN.apps[1].id, CHAIN.apps[1].objects[0].id)
    assert len(part.edges) == 1


def test_a_cycle_of_apps_terminates() -> None:
    ring = made([[0], [0]], [(0, 1), (1, 0)])
    assert ring.around([ring.apps[0].id], dependents=True) == ring


def test_a_model_in_a_bucket_is_awaited_and_mounted_like_any_other(tmp_path: Path) -> None:
    specs = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {name: qwen}
spec:
  source: {huggingFace: {repo: org/qwen, revision: 0123456789abcdef0123456789abcdef01234567}}
  store: {bucket: {uri: "gs://models/qwen/", credentials: {secret: {name: hmac}}}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: batch}
spec: {image: "docker.io/acme/batch:1", model: qwen}
"""
    graph = repository(tmp_path, {"specs/all.yaml": specs})
    assert edges(graph) >= {
        ("ml/batch/job", "waits for", "ml/qwen/job"),
        ("ml/batch/job", "mounts", "ml/qwen/persistentvolumeclaim"),
        ("ml/qwen/persistentvolumeclaim", "refers to", "ml/qwen/persistentvolume"),
    }
    assert [node.name for node in graph.externals] == ["hmac"]


def test_a_gate_waits_for_its_job(tmp_path: Path) -> None:
    specs = """
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: tune}
spec: {image: "tune:1", output: {volume: {size: 1Gi}}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat}
spec: {engine: transformers, model: {job: {name: tune}}}
"""
    found = edges(repository(tmp_path, {"specs/all.yaml": specs}))
    assert ("ml/chat/deployment", "waits for", "ml/tune/job") in found
    assert ("ml/chat/deployment", "runs as", "ml/chat/serviceaccount") in found
    assert not {edge for edge in found if edge[2].startswith("external/Job")}


def test_an_endpoint_asks_the_services_of_its_topologies(tmp_path: Path) -> None:
    example = DEMO.parent / "endpoint" / "two-models.yaml"
    found = edges(repository(tmp_path, {"specs/two.yaml": example.read_text(encoding="utf-8")}))
    asked = {target for source, word, target in found if (source, word) == ("ml/models/deployment", "asks")}
    assert asked == {"ml/chat/service", "ml/coder/service", "ml/models/service-pods"}
