"""A tenant has only labels and annotations that need no grant or that kaigen.yaml grants it, in every place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import ALL, VALUES, Step
from kaigen.kubernetes.schemas import definition, index, may_be_custom
from kaigen.tenancy.reach import TEMPLATE_PATHS
from kaigen.tenancy.rows.metadata import METADATA_REACHES
from kaigen.tenancy.rows.pods import EPHEMERAL_CLAIM
from kaigen.tenancy.violations import violations
from tests.cases import Case, cases
from tests.tenancy.keys import CONTROLLER_KEYS, INVALID_KEYS, ODD_KEYS, UPPER_KEYS
from tests.tenancy.tenants import OTHER, TENANT, Body
from tests.unit.security.hostile import CONFIG, JOB, Repository

REFUSED = (*CONTROLLER_KEYS, *ODD_KEYS, *UPPER_KEYS, *INVALID_KEYS)
CRDS = Path(__file__).parents[2] / "cluster" / "crds"


def tenant_of(root: Path, **changes: object) -> Tenant:
    """Return the tenant, of a kaigen.yaml that is written into a folder."""
    tenants = {"tenants": {"a": {**TENANT, **changes}, "b": OTHER}}
    (root / "kaigen.yaml").write_text(CONFIG + yaml.safe_dump(tenants), encoding="utf-8")
    return load_config(root).tenants[0]


def _object(api: str, kind: str, *place: str) -> Callable[[Body], Body]:
    """Return a function of metadata that returns an object with it at a place; a number is a list's only item."""

    def made(metadata: Body) -> Body:
        value: Any = metadata
        for step in reversed(place):
            value = [value] if step == ALL else {step: value}
        return {"apiVersion": api, "kind": kind, **value}

    return made


PLACES: Mapping[str, Callable[[Body], Body]] = {
    "a Service": _object("v1", "Service", "metadata"),
    "a ServiceAccount": _object("v1", "ServiceAccount", "metadata"),
    "a Secret": _object("v1", "Secret", "metadata"),
    "a Namespace": _object("v1", "Namespace", "metadata"),
    "a PersistentVolume": _object("v1", "PersistentVolume", "metadata"),
    "an Ingress": _object("networking.k8s.io/v1", "Ingress", "metadata"),
    "a kind of a user": _object("example.com/v1", "Thing", "metadata"),
    "a Pod": _object("v1", "Pod", "metadata"),
    "pods": _object("apps/v1", "Deployment", "spec", "template", "metadata"),
    "pods of Jobs": _object("batch/v1", "CronJob", "spec", "jobTemplate", "spec", "template", "metadata"),
    "Jobs": _object("batch/v1", "CronJob", "spec", "jobTemplate", "metadata"),
    "claims": _object("apps/v1", "StatefulSet", "spec", "volumeClaimTemplates", ALL, "metadata"),
    "claims of a JobSet": _object(
        "jobset.x-k8s.io/v1alpha2", "JobSet", "spec", "volumeClaimPolicies", ALL, "templates", ALL, "metadata"
    ),
    "claims of pods": _object("v1", "Pod", "spec", "volumes", ALL, "ephemeral", "volumeClaimTemplate", "metadata"),
    "claims of devices": _object("resource.k8s.io/v1", "ResourceClaimTemplate", "spec", "metadata"),
    "a Gateway's objects": _object("gateway.networking.k8s.io/v1", "Gateway", "spec", "infrastructure"),
    "an ExternalSecret's Secret": _object(
        "external-secrets.io/v1", "ExternalSecret", "spec", "target", "template", "metadata"
    ),
    "a SealedSecret's Secret": _object("bitnami.com/v1alpha1", "SealedSecret", "spec", "template", "metadata"),
    "a certificate's Secret": _object("cert-manager.io/v1", "Certificate", "spec", "secretTemplate"),
    "Ray's pods": _object("ray.io/v1", "RayCluster", "spec", "workerGroupSpecs", ALL),
    "Ray's Service": _object("ray.io/v1", "RayService", "spec", "serveService", "metadata"),
}


def keys_of(tenant: Tenant, body: Body) -> set[str]:
    """Return the labels and annotations of an object that a tenant is not granted."""
    messages = (problem.message for problem in violations(body, "team-a", tenant))
    found = (re.search(r" the (?:annotation|label) `(.*?)`", message, re.DOTALL) for message in messages)
    return {match[1] for match in found if match}


@pytest.mark.parametrize("field", ["labels", "annotations"])
@pytest.mark.parametrize("place", PLACES)
def test_a_key_of_a_controller_needs_a_grant_in_every_place(tmp_path: Path, place: str, field: str) -> None:
    body = PLACES[place]({field: dict.fromkeys(REFUSED, "x")})
    assert keys_of(tenant_of(tmp_path), body) == set(REFUSED)
    granted = tenant_of(tmp_path, annotations=["kai.scheduler/queue", "gpu-*", "linkerd.io/inject=x", "mps=y"])
    expected = {key for key in REFUSED if key not in ("kai.scheduler/queue", "linkerd.io/inject")}
    assert keys_of(granted, body) == {key for key in expected if not key.startswith("gpu-")}


def test_at_least_sixty_keys_of_controllers_are_refused() -> None:
    assert len(CONTROLLER_KEYS) >= 60
    assert len({*ODD_KEYS, *UPPER_KEYS, *INVALID_KEYS}) >= 10


FREE = (
    "app",
    "App_Name-1",
    "app.kubernetes.io/name",
    "kaigen.dev/reads",
    "prometheus.io/scrape",
    "example.com/a_b.C",
    "x.y.example.com/a",
    "a-team.example.org/a",
    "helm.sh/chart",
    "kueue.x-k8s.io/queue-name",
)


@pytest.mark.parametrize("place", PLACES)
def test_usual_keys_and_those_of_own_domains_need_no_grant(tmp_path: Path, place: str) -> None:
    body = PLACES[place]({"labels": dict.fromkeys(FREE, "x"), "annotations": dict.fromkeys(FREE, "x")})
    assert keys_of(tenant_of(tmp_path), body) == set()


def test_a_domain_is_the_tenants_own_only_if_it_lists_it(tmp_path: Path) -> None:
    body = PLACES["pods"]({"annotations": {"example.com/a": "x", "x.a-team.example.org/a": "x"}})
    assert keys_of(tenant_of(tmp_path, domains=[]), body) == {"example.com/a", "x.a-team.example.org/a"}


def test_the_message_names_who_obeys_a_key(tmp_path: Path) -> None:
    body = PLACES["pods"]({"annotations": {"kai.scheduler/queue": "b", "unknown.example.net/x": "x"}})
    (known, unknown) = [problem.message for problem in violations(body, "team-a", tenant_of(tmp_path))]
    assert known.endswith("the annotation `kai.scheduler/queue`, which is read by schedulers")
    assert unknown.endswith("the annotation `unknown.example.net/x`")


@pytest.mark.parametrize(
    "domain", ["istio.io", "x.istio.io", "hashicorp.com", "kubernetes.io", "team.k8s.io", "nvidia.com", "argoproj.io"]
)
def test_a_domain_of_a_controller_is_no_domain_of_a_tenant(repository: Repository, domain: str) -> None:
    tenants = {"tenants": {"a": {**TENANT, "domains": ["example.com", domain]}}}
    repository.write({"kaigen.yaml": CONFIG + yaml.safe_dump(tenants)})
    done = repository.kaigen("validate")
    assert (done.code, done.err.count("KG0744")) == (2, 1), done.text
    assert f"`{domain}` is not a domain of a tenant" in done.err


@pytest.mark.parametrize(
    "domain", ["com", "Example.com", "*.example.com", "example.com/x", "a..b", ".example.com", "-a.b"]
)
def test_a_domain_has_the_form_of_a_name(repository: Repository, domain: str) -> None:
    repository.write({"kaigen.yaml": CONFIG + yaml.safe_dump({"tenants": {"a": {**TENANT, "domains": [domain]}}})})
    done = repository.kaigen("validate")
    assert (done.code, "tenants.a.domains[0]" in done.err) == (2, True), done.text


def test_diff_shows_a_new_domain_of_a_tenant_as_a_danger(repository: Repository) -> None:
    first = {"tenants": {"a": {**TENANT, "domains": []}}}
    repository.write({"kaigen.yaml": CONFIG + yaml.safe_dump(first), "specs/evaluate.yaml": ""})
    repository.rendered()
    repository.write({"kaigen.yaml": CONFIG + yaml.safe_dump({"tenants": {"a": TENANT}})})
    done = repository.kaigen("diff", "--base", "HEAD")
    assert "domains example.com, a-team.example.org as tenant a" in " ".join(done.out.split()), done.text


def test_annotations_of_a_spec_are_reported_at_their_lines(repository: Repository) -> None:
    repository.write({"kaigen.yaml": CONFIG + yaml.safe_dump({"tenants": {"a": {**TENANT, "namespaces": ["ml"]}}})})
    noted = JOB.replace("{name: evaluate}", "{name: evaluate, annotations: {devices.nri.io/container.main: x}}")
    repository.write({"specs/a/x.yaml": noted})
    done = repository.kaigen("validate")
    assert "specs/a/x.yaml:3:73: error[KG0582]" in done.err, done.text
    assert "which is read by container runtimes" in done.err


GIVEN = (
    "azure.workload.identity/client-id",
    "eks.amazonaws.com/role-arn",
    "grafana_dashboard",
    "iam.gke.io/gcp-service-account",
    "sidecar.istio.io/inject",
)
"""Keys of controllers in the specs of tests, which are not kaigen's."""


def _metadata_of(case: Case) -> Iterator[Body]:
    for path, content in case.render().items():
        if "/manifests/" in path and not path.startswith("_") and path.endswith(".yaml"):
            for body in yaml.load_all(content, yaml.CSafeLoader):
                if isinstance(body, dict) and not path.split("/")[1].startswith("_"):
                    yield body


@pytest.mark.parametrize("name", cases())
def test_nothing_that_kaigen_sets_needs_a_grant(tmp_path: Path, name: str) -> None:
    tenant = tenant_of(tmp_path, annotations=list(GIVEN))
    refused = {key for body in _metadata_of(cases()[name]) for key in keys_of(tenant, body)}
    assert refused == set()


_WITH_ANYTHING = {
    "HelmRelease.helm.toolkit.fluxcd.io": "installs any objects",
    "Kustomization.kustomize.toolkit.fluxcd.io": "applies any objects",
    "NodePool.karpenter.sh": "is of the cluster",
}
"""Kinds that no rule about metadata can limit."""


def _places(schema: Body, steps: Step = ()) -> Iterator[Step]:
    """Yield where a schema has labels or annotations of other objects."""
    properties = schema.get("properties") or {}
    names = {"labels", "annotations"} & properties.keys()
    if steps and any((properties[name].get("additionalProperties") or {}).get("type") == "string" for name in names):
        yield steps
    for name, below in properties.items():
        if steps or name == "spec":
            yield from _places(below, (*steps, name))
    if "items" in schema:
        yield from _places(schema["items"], (*steps, ALL))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _places(schema["additionalProperties"], (*steps, VALUES))


@cache
def _crd_places(file: Path) -> set[tuple[str, Step]]:
    """Return the places of the kinds of a file. Reading a file takes long, so only tests do it."""
    found = set()
    for body in yaml.load_all(file.read_text(encoding="utf-8"), yaml.CSafeLoader):
        spec: Body = body["spec"]
        kind = f"{spec['names']['kind']}.{spec['group']}"
        if kind in KINDS and kind not in _WITH_ANYTHING:
            for version in spec["versions"]:
                found |= {(kind, place) for place in _places(version["schema"]["openAPIV3Schema"])}
    return {(kind, place) for kind, place in found if "volumes" not in place}


CRD_FILES = sorted(CRDS.glob("*.yaml"))


@pytest.mark.parametrize("file", CRD_FILES, ids=lambda file: file.stem)
def test_all_metadata_that_a_custom_resource_gives_to_others_has_a_row(file: Path) -> None:
    known = {(kind, steps) for reach in METADATA_REACHES for kind in reach.types for steps in reach.paths}
    known |= {(kind, steps) for kind, paths in TEMPLATE_PATHS.items() for steps in paths}
    # Labels and annotations of alerts, which are no metadata of objects.
    known |= {
        ("PrometheusRule.monitoring.coreos.com", ("spec", "groups", ALL, *rules)) for rules in ((), ("rules", ALL))
    }
    assert _crd_places(file) - known == set()


def test_the_custom_resources_of_templates_are_found() -> None:
    found = {kind for file in CRD_FILES for kind, _ in _crd_places(file)}
    assert {"ExternalSecret.external-secrets.io", "SealedSecret.bitnami.com", "JobSet.jobset.x-k8s.io"} <= found
    assert {"Gateway.gateway.networking.k8s.io", "RayService.ray.io", "RayCluster.ray.io"} <= found


def _metadata_fields(ref: str, steps: Step = (), seen: tuple[str, ...] = ()) -> Iterator[Step]:
    """Yield where a type of Kubernetes has the metadata of other objects."""
    node = definition(ref, "1.36")
    if ref in seen or not isinstance(node, dict):
        return
    for name, below in node.get("p", {}).items():
        item = below.get("l") if isinstance(below, dict) else None
        target, place = (item, (*steps, name, ALL)) if item else (below, (*steps, name))
        if target == "meta.v1/ObjectMeta":
            yield place
        elif isinstance(target, str) and "/" in target:
            yield from _metadata_fields(target, place, (*seen, ref))


def _built_in() -> Iterator[tuple[str, Step]]:
    for row in KINDS.values():
        for name, entry in index()["kinds"].get(row.kind, {}).items():
            api = name.rpartition("/")[0]
            if api == row.group and not may_be_custom(name, row.kind) and "ref" in entry:
                for place in _metadata_fields(entry["ref"]):
                    yield row.type, place


BUILT_IN_PLACES = sorted({(kind, place) for kind, place in _built_in() if place != ("metadata",)})


@pytest.mark.parametrize(("kind", "place"), BUILT_IN_PLACES)
def test_all_metadata_that_an_object_of_kubernetes_gives_to_others_has_a_row(kind: str, place: Step) -> None:
    in_pods = ("spec", *EPHEMERAL_CLAIM, "metadata")
    assert place in TEMPLATE_PATHS.get(kind, ()) or place[-len(in_pods) :] == in_pods


def test_the_objects_of_kubernetes_with_templates_are_found() -> None:
    found = {kind for kind, _ in BUILT_IN_PLACES}
    assert {"Pod", "Deployment.apps", "CronJob.batch", "ResourceClaimTemplate.resource.k8s.io"} <= found
