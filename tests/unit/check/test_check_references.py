from __future__ import annotations

from typing import Any

import pytest

from kaigen.check import codes
from kaigen.check.references import check_references
from kaigen.diagnostics.problem import Problem
from tests.unit.check.example_objects import example, objects
from tests.unit.check.mutations import at

Object = dict[str, Any]
SPEC = ("spec", "template", "spec")


def app(*kinds: str) -> list[Object]:
    """The example app around the Deployment, without some kinds."""
    members = ["Deployment", "Service", "ConfigMap", "PersistentVolumeClaim", "ServiceAccount", "Role", "RoleBinding"]
    members += ["NetworkPolicy", "Ingress", "PodDisruptionBudget", "HorizontalPodAutoscaler", "PodMonitor"]
    return [example(kind) for kind in members if kind not in kinds]


def changed(kind: str, place: tuple[str | int, ...], value: object) -> list[Object]:
    """The app with one value of one object changed."""
    objs = app()
    obj = next(o for o in objs if o["kind"] == kind)
    at(obj, place[:-1])[place[-1]] = value
    return objs


def shown(objs: list[Object], external: set[tuple[str, str, str]] | None = None) -> list[tuple[str, str, str]]:
    """Kind, place and message of each finding."""
    found = check_references(objs, external=external or set())
    return [(objs[place]["kind"], finding.where, finding.message) for place, finding in found]


def only(found: list[tuple[int, Problem]]) -> Problem:
    assert len(found) == 1, found
    return found[0][1]


def test_a_complete_app_has_no_problems() -> None:
    assert shown(app()) == []


def test_only_two_services_are_missing_from_all_examples() -> None:
    found = check_references(objects(), external={("Service", "ai", "notebook"), ("Service", "ai", "llama-epp")})
    assert found == []
    assert len(check_references(objects())) == 2


@pytest.mark.parametrize(
    ("missing", "findings"),
    [
        ("ServiceAccount", [
            ("Deployment", "spec.template.spec.serviceAccountName",
             "there is no ServiceAccount `chat` in namespace ai"),
            ("RoleBinding", "subjects[0].name", "there is no ServiceAccount `chat` in namespace ai"),
        ]),
        ("PersistentVolumeClaim", [
            ("Deployment", "spec.template.spec.volumes[0].persistentVolumeClaim.claimName",
             "there is no PersistentVolumeClaim `chat-model` in namespace ai"),
        ]),
        ("ConfigMap", [
            ("Deployment", "spec.template.spec.containers[0].envFrom[0].configMapRef.name",
             "there is no ConfigMap `chat-params` in namespace ai"),
            ("Deployment", "spec.template.spec.volumes[2].projected.sources[0].configMap.name",
             "there is no ConfigMap `chat-params` in namespace ai"),
        ]),
        ("Role", [("RoleBinding", "roleRef.name", "there is no Role `chat` in namespace ai")]),
        ("Service", [
            ("Ingress", "spec.rules[0].http.paths[0].backend.service.name",
             "there is no Service `chat` in namespace ai"),
        ]),
        ("Deployment", [
            ("Service", "spec.selector", "the Service selects no pod of the app"),
            ("NetworkPolicy", "spec.podSelector", "the NetworkPolicy selects no pod of the app"),
            ("PodDisruptionBudget", "spec.selector", "the PodDisruptionBudget selects no pod of the app"),
            ("HorizontalPodAutoscaler", "spec.scaleTargetRef.name",
             "there is no Deployment `chat` in namespace ai"),
            ("PodMonitor", "spec.selector", "the PodMonitor selects no pod of the app"),
        ]),
    ],
)  # fmt: skip
def test_a_missing_object_is_reported_at_each_reference(missing: str, findings: list[tuple[str, str, str]]) -> None:
    assert shown(app(missing)) == findings


def test_external_objects_are_not_reported() -> None:
    external = {
        ("ConfigMap", "ai", "chat-params"),
        ("PersistentVolumeClaim", "ai", "chat-model"),
        ("ServiceAccount", "ai", "chat"),
    }
    assert shown(app("ConfigMap", "PersistentVolumeClaim", "ServiceAccount"), external) == []
    elsewhere = {("PersistentVolumeClaim", "other", "chat-model")}
    assert len(shown(app("PersistentVolumeClaim"), elsewhere)) == 1


def test_the_nearest_name_is_suggested() -> None:
    finding = only(check_references(changed("Deployment", (*SPEC, "serviceAccountName"), "chatt")))
    assert finding.hint == "did you mean `chat`?"


@pytest.mark.parametrize("name", ["", "default"])
def test_every_namespace_has_a_default_account(name: str) -> None:
    assert shown(changed("Deployment", (*SPEC, "serviceAccountName"), name)) == []


def test_every_namespace_has_the_root_certificate() -> None:
    volume = {"name": "ca", "configMap": {"name": "kube-root-ca.crt"}}
    assert shown(changed("Deployment", (*SPEC, "volumes", 2), volume)) == []


@pytest.mark.parametrize("role", ["view", "cluster-admin", "system:auth-delegator"])
def test_every_cluster_has_built_in_roles(role: str) -> None:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    assert shown(changed("RoleBinding", ("roleRef",), reference)) == []
    assert len(shown(changed("RoleBinding", ("roleRef",), reference | {"name": "mine"}))) == 1


def test_missing_secrets_are_not_reported() -> None:
    objs = changed("Deployment", (*SPEC, "volumes", 2), {"name": "config", "secret": {"secretName": "gone"}})
    next(o for o in objs if o["kind"] == "ServiceAccount")["imagePullSecrets"] = [{"name": "gone"}]
    assert shown(objs) == []


def test_an_optional_config_map_may_be_missing() -> None:
    source = [{"configMapRef": {"name": "later", "optional": True}}]
    assert shown(changed("Deployment", (*SPEC, "containers", 0, "envFrom"), source)) == []


def test_a_key_of_a_config_map_must_be_in_it() -> None:
    variable = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "chat-params", "key": "param.json"}}}
    finding = only(check_references(changed("Deployment", (*SPEC, "containers", 0, "env", 0), variable)))
    assert finding.message == "the ConfigMap `chat-params` has no key `param.json`"
    assert finding.hint == "did you mean `params.json`?"
    variable["valueFrom"]["configMapKeyRef"]["key"] = "tokenizer.bin"  # type: ignore[index]
    assert shown(changed("Deployment", (*SPEC, "containers", 0, "env", 0), variable)) == []


def test_objects_without_a_namespace_share_one() -> None:
    objs = app()
    for obj in objs:
        del obj["metadata"]["namespace"]
    assert shown(objs) == []


def test_a_reference_stays_in_its_namespace() -> None:
    assert shown(changed("PersistentVolumeClaim", ("metadata", "namespace"), "other")) == [
        (
            "Deployment",
            "spec.template.spec.volumes[0].persistentVolumeClaim.claimName",
            "there is no PersistentVolumeClaim `chat-model` in namespace ai",
        )
    ]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("spec", "ports", 0, "targetPort"), "web", "no selected pod has a port `web`"),
        (("spec", "ports", 0, "name"), "web", "the Service `chat` has no port http"),
    ],
)
def test_a_route_must_name_a_port_of_its_service(place: tuple[str | int, ...], value: object, message: str) -> None:
    assert [text for _, _, text in shown(changed("Service", place, value))] == [message]


def test_a_route_must_name_existing_services_and_pools() -> None:
    route, pool, workers = example("HTTPRoute"), example("InferencePool"), example("LeaderWorkerSet")
    picker = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "llama-epp", "namespace": "ai"}}
    objs = [*app(), route, pool, workers, picker]
    assert shown(objs) == []
    route["spec"]["rules"][0]["backendRefs"][1]["port"] = 81
    route["spec"]["rules"][0]["backendRefs"][0]["name"] = "lama"
    pool["spec"]["selector"]["matchLabels"]["app"] = "qwen"
    assert shown(objs) == [
        ("HTTPRoute", "spec.rules[0].backendRefs[0].name", "there is no InferencePool `lama` in namespace ai"),
        ("HTTPRoute", "spec.rules[0].backendRefs[1].port", "the Service `chat` has no port 81"),
        ("InferencePool", "spec.selector", "the InferencePool selects no pod of the app"),
    ]


def test_labels_that_a_controller_adds_are_accepted() -> None:
    service = example("Service")
    service["spec"] = {
        "selector": {"app": "llama", "leaderworkerset.sigs.k8s.io/worker-index": "0"},
        "ports": [{"port": 80, "targetPort": "http"}],
    }
    assert shown([service, example("LeaderWorkerSet")]) == []
    assert ("Service", "spec.selector", "the Service selects no pod of the app") in shown(
        [service, example("Deployment")]
    )


@pytest.mark.parametrize(
    ("expression", "selects"),
    [
        ({"operator": "In", "values": ["chat", "x"]}, True),
        ({"operator": "In", "values": ["x"]}, False),
        ({"operator": "NotIn", "values": ["x"]}, True),
        ({"operator": "NotIn", "values": ["chat"]}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "DoesNotExist"}, False),
    ],
)
def test_selectors_may_be_expressions(expression: Object, selects: bool) -> None:
    selector = {"matchExpressions": [{"key": "app.kubernetes.io/name", **expression}]}
    found = shown(changed("PodDisruptionBudget", ("spec", "selector"), selector))
    assert (found == []) is selects


def test_an_empty_selector_is_not_checked() -> None:
    assert shown([example("NetworkPolicy") | {"spec": {"podSelector": {}}}]) == []


def test_a_scaler_must_name_an_existing_workload_and_authentication() -> None:
    scaled, authentication = example("ScaledObject"), example("TriggerAuthentication")
    assert shown([*app(), scaled, authentication]) == []
    assert [where for _, where, _ in shown([scaled])] == [
        "spec.scaleTargetRef.name",
        "spec.triggers[0].authenticationRef.name",
    ]


def test_a_device_claim_needs_its_template() -> None:
    job, template = example("Job"), example("ResourceClaimTemplate")
    assert shown([job, template]) == []
    assert shown([job]) == [
        (
            "Job",
            "spec.template.spec.resourceClaims[0].resourceClaimTemplateName",
            "there is no ResourceClaimTemplate `one-gpu` in namespace ai",
        )
    ]


def test_a_duplicate_object_is_reported() -> None:
    objs = [example("ConfigMap"), example("Service"), example("ConfigMap")]
    found = [(place, f.code) for place, f in check_references(objs) if f.code == codes.DUPLICATE_OBJECT]
    assert found == [(2, codes.DUPLICATE_OBJECT)]
    objs[2]["metadata"]["namespace"] = "other"
    assert codes.DUPLICATE_OBJECT not in {f.code for _, f in check_references(objs)}


@pytest.mark.parametrize("junk", [None, 7, "x", [], [[]], [None], {}, {"name": []}, {1: 2}, [{"name": {}}]])
def test_values_of_the_wrong_type_are_ignored(junk: object) -> None:
    for number, obj in enumerate(app()):
        for field in obj:
            objs = app()
            objs[number][field] = junk
            check_references(objs)
        for field in obj.get("spec", {}):
            objs = app()
            objs[number]["spec"][field] = junk
            check_references(objs)
