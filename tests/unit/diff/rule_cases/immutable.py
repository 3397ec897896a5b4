"""Fields that cannot change in place."""

from __future__ import annotations

from tests.unit.diff.diff_cases import Obj, claim, deployment, job, obj, stateful, template, with_
from tests.unit.diff.rule_cases.objects import Case, binding, config, pv, service


def topology(*levels: str) -> Obj:
    """A Topology of Kueue."""
    return obj("Topology", "t", "kueue.x-k8s.io/v1beta2", spec={"levels": [{"nodeLabel": each} for each in levels]})


FORCED = {"annotations": {"argocd.argoproj.io/sync-options": "Force=true, Replace=true"}}
RUN = "spec/template/spec/containers/0"

CASES: list[Case] = [
    *(
        Case("immutable", what, old, new, [("danger", f"will be rejected: {text}")])
        for what, old, new, text in (
            (
                "a Job's template",
                job(),
                with_(job(), f"{RUN}/image", "b"),
                "spec.template is immutable; rename the Job, which starts a new run, or delete it first",
            ),
            (
                "several fields of a Job",
                job(completions=1),
                job(completions=2, completionMode="Indexed", parallelism=3),
                "spec.completionMode and spec.completions are immutable; rename the Job, "
                "which starts a new run, or delete it first",
            ),
            *(
                (
                    f"a claim's {field}",
                    with_(claim(), f"spec/{field}", was),
                    with_(claim(), f"spec/{field}", now),
                    f"spec.{field} is immutable; delete PersistentVolumeClaim data first, which loses its "
                    "data, "
                    "or use another name",
                )
                for field, was, now in (
                    ("storageClassName", "a", "b"),
                    ("accessModes", ["ReadWriteOnce"], ["ReadWriteMany"]),
                    ("volumeMode", "Filesystem", "Block"),
                    ("volumeName", "a", "b"),
                )
            ),
            *(
                (
                    what,
                    old,
                    new,
                    f"{field} is immutable; delete {old['kind']} {old['metadata']['name']} first or use another name",
                )
                for what, old, new, field in (
                    (
                        "a Deployment's selector",
                        deployment(selector={"matchLabels": {"a": "b"}}),
                        deployment(selector={"matchLabels": {"a": "c"}}),
                        "spec.selector",
                    ),
                    (
                        "a StatefulSet's service",
                        stateful(serviceName="a"),
                        stateful(serviceName="b"),
                        "spec.serviceName",
                    ),
                    (
                        "a StatefulSet's claims",
                        stateful(volumeClaimTemplates=[claim()]),
                        stateful(volumeClaimTemplates=[claim(size="20Gi")]),
                        "spec.volumeClaimTemplates",
                    ),
                    ("a binding's role", binding("a", to="r"), binding("a", to="s"), "roleRef"),
                    (
                        "a class's parameters",
                        obj("StorageClass", "c", "storage.k8s.io/v1", parameters={"a": "b"}),
                        obj("StorageClass", "c", "storage.k8s.io/v1", parameters={"a": "c"}),
                        "parameters",
                    ),
                    ("a volume's source", pv(), with_(pv(), "spec/csi/volumeHandle", "c"), "spec.csi"),
                    ("a Service's address", service(clusterIP="None"), service(clusterIP="10.0.0.1"), "spec.clusterIP"),
                    (
                        "a Service that becomes headless",
                        service(),
                        service(clusterIP="None"),
                        "spec.clusterIP (the cluster assigned an address)",
                    ),
                    (
                        "an immutable ConfigMap",
                        config(data={"a": "b"}, immutable=True),
                        config(data={"a": "c"}, immutable=True),
                        "data (immutable: true)",
                    ),
                    (
                        "a JobSet's jobs",
                        obj("JobSet", "j", "jobset.x-k8s.io/v1alpha2", spec={"replicatedJobs": [{"name": "a"}]}),
                        obj("JobSet", "j", "jobset.x-k8s.io/v1alpha2", spec={"replicatedJobs": [{"name": "b"}]}),
                        "spec.replicatedJobs",
                    ),
                )
            ),
        )
    ),
    Case(
        "immutable",
        "a Job that Argo CD may force",
        job() | {"metadata": job()["metadata"] | FORCED},
        with_(job(), f"{RUN}/image", "b") | {"metadata": job()["metadata"] | FORCED},
        [("notice", "is deleted and created again: spec.template cannot change in place, and force is set")],
    ),
    Case(
        "immutable",
        "a claim that Flux may force",
        claim(storageClassName="a", annotations={"kustomize.toolkit.fluxcd.io/force": "enabled"}),
        claim(storageClassName="b", annotations={"kustomize.toolkit.fluxcd.io/force": "enabled"}),
        [
            (
                "danger",
                "is deleted and created again: spec.storageClassName cannot change in place, and force is set, "
                "and its data is lost",
            )
        ],
    ),
    Case("immutable", "a default that is now written", claim(), claim(volumeMode="Filesystem"), []),
    Case(
        "immutable",
        "an Indexed Job that grows with its parallelism",
        job(completionMode="Indexed", completions=2, parallelism=2),
        job(completionMode="Indexed", completions=4, parallelism=4),
        [],
    ),
    Case(
        "immutable",
        "a suspended Job that is placed elsewhere",
        job(suspend=True),
        job(suspend=True, pod=template(nodeSelector={"a": "b"})),
        [],
    ),
    Case(
        "immutable",
        "another class of a load balancer",
        service(type="LoadBalancer", loadBalancerClass="a"),
        service(type="LoadBalancer", loadBalancerClass="b"),
        [
            (
                "danger",
                "will be rejected: spec.loadBalancerClass is immutable; delete Service web first or use another name",
            )
        ],
    ),
    *(
        Case("immutable", what, service(type=was, loadBalancerClass="a"), service(type=now, **fields), [])
        for what, was, now, fields in (
            ("the same class of a load balancer", "LoadBalancer", "LoadBalancer", {"loadBalancerClass": "a", "x": 1}),
            ("a class of a load balancer that becomes internal", "LoadBalancer", "ClusterIP", {}),
        )
    ),
    *(
        Case("silently-kept", what, service(**was), service(**now), [])
        for what, was, now in (
            ("an address that stays", {"clusterIP": "None"}, {"clusterIP": "None", "ports": []}),
            ("an address that is empty", {"clusterIP": ""}, {}),
        )
    ),
    Case("immutable", "a Service from ExternalName", service(type="ExternalName"), service(clusterIP="None"), []),
    Case(
        "silently-kept",
        "an address that is left out",
        service(clusterIP="None"),
        service(),
        [
            (
                "notice",
                "clusterIP stays None: removing the field changes nothing; delete Service web to get another address",
            )
        ],
    ),
    Case(
        "silently-kept",
        "a class that is set later",
        claim(),
        claim(storageClassName="fast"),
        [
            (
                "notice",
                "is rejected unless the claim already has storageClassName fast or has none: the cluster "
                "may have set it",
            )
        ],
    ),
    Case(
        "custom-rule",
        "a NodePool that no longer has a number of nodes",
        obj("NodePool", "n", "karpenter.sh/v1", spec={"replicas": 2}),
        obj("NodePool", "n", "karpenter.sh/v1", spec={}),
        [
            (
                "danger",
                "will be rejected: spec: Cannot transition NodePool between static (replicas set) and dynamic "
                "(replicas unset) provisioning modes; delete NodePool n first or use another name",
            )
        ],
    ),
    Case("custom-rule", "the levels of a Topology, which are immutable themselves", topology("a"), topology("b"), []),
    Case("custom-rule", "a new Topology", None, topology("rack"), []),
    Case(
        "custom-rule",
        "the class of a NodePool, which is immutable itself",
        obj("NodePool", "n", "karpenter.sh/v1", spec={"template": {"spec": {"nodeClassRef": {"group": "a.b"}}}}),
        obj("NodePool", "n", "karpenter.sh/v1", spec={"template": {"spec": {"nodeClassRef": {"group": "a.c"}}}}),
        [],
    ),
]
