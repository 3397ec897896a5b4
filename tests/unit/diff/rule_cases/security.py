"""Who may do what; each check of a pod has its own test."""

from __future__ import annotations

from tests.unit.diff.diff_cases import Obj, container, deployment, obj, template, with_
from tests.unit.diff.rule_cases.objects import Case, binding, grant, namespace, role

WEB = deployment(replicas=2)
RUN = "spec/template/spec/containers/0"


def projected_token(token: Obj, *names: str) -> Obj:
    """A pod template with a volume that has a token, which only these containers mount."""
    mounts = [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
    containers = [container(name, volumeMounts=mounts) for name in names]
    volume = {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token", **token}}]}}
    return template(*containers, container("other"), serviceAccountName="sa", volumes=[volume])


def unknown(image: str, **spec: Obj) -> Obj:
    """An object of a kind of which kaigen has no schema."""
    return obj("PyTorchJob", "train", "kubeflow.org/v1", spec={"worker": template(container(image=image)), **spec})


CASES: list[Case] = [
    Case(
        "unknown-pods",
        "a new object of a kind that is not known",
        None,
        unknown("a"),
        [("danger", "runs pods that kaigen does not know the kind of, at spec.worker.spec")],
    ),
    Case(
        "unknown-pods",
        "another image in it",
        unknown("a"),
        unknown("b"),
        [("danger", "runs pods that kaigen does not know the kind of, at spec.worker.spec")],
    ),
    Case("unknown-pods", "the same pods", unknown("a"), unknown("a", other={"b": 1}), []),
    Case("unknown-pods", "a kind that is known", None, WEB, []),
    Case(
        "pod-security",
        "a pod that becomes privileged on the node's network",
        WEB,
        with_(with_(WEB, "spec/template/spec/hostNetwork", True), f"{RUN}/securityContext/privileged", True),
        [
            (
                "danger",
                "security is looser: pod uses the network namespace of the node (hostNetwork) and container run is "
                "privileged",
            )
        ],
    ),
    Case(
        "pod-security",
        "a new pod that may be root",
        None,
        with_(WEB, "spec/template/spec/securityContext/runAsNonRoot", None),
        [("danger", "security is looser: container run may run as root (runAsNonRoot is not true)")],
    ),
    Case(
        "pod-security",
        "a pod that is hardened",
        with_(WEB, "spec/template/spec/hostPID", True),
        WEB,
        [("info", "security is tighter, no longer: pod uses the process namespace of the node (hostPID)")],
    ),
    Case(
        "pod-security",
        "a pod that stays as loose",
        deployment(pod={"spec": {}}),
        deployment(pod={"spec": {"a": 1}}),
        [],
    ),
    Case(
        "writable-root",
        "a root file system that opens",
        WEB,
        with_(WEB, f"{RUN}/securityContext/readOnlyRootFilesystem", None),
        [("notice", "root file system becomes writable in container run")],
    ),
    Case(
        "token",
        "pods that get a token",
        WEB,
        with_(WEB, "spec/template/spec/automountServiceAccountToken", None),
        [("notice", "pods get the API token of service account default")],
    ),
    Case(
        "token",
        "new pods that ask for it",
        None,
        deployment(pod=template(automountServiceAccountToken=True, serviceAccountName="sa")),
        [("notice", "pods get the API token of service account sa")],
    ),
    Case(
        "token",
        "a container that mounts it",
        deployment(pod=projected_token({})),
        deployment(pod=projected_token({}, "run")),
        [("notice", "container run gets the API token of service account sa")],
    ),
    Case(
        "token",
        "new containers that mount it",
        None,
        deployment(pod=projected_token({}, "gate", "run")),
        [("notice", "containers gate and run get the API token of service account sa")],
    ),
    Case(
        "token",
        "a container that had it from its pod",
        deployment(pod=template(automountServiceAccountToken=True, serviceAccountName="sa")),
        deployment(pod=projected_token({}, "run")),
        [],
    ),
    Case(
        "token", "a token for another server", None, deployment(pod=projected_token({"audience": "vault"}, "run")), []
    ),
    Case(
        "token",
        "an account that gives it",
        obj("ServiceAccount", "sa", automountServiceAccountToken=False),
        obj("ServiceAccount", "sa"),
        [("notice", "pods of this service account get its API token unless they opt out")],
    ),
    Case("token", "an account that does not", None, obj("ServiceAccount", automountServiceAccountToken=False), []),
    Case(
        "account",
        "another account",
        WEB,
        with_(WEB, "spec/template/spec/serviceAccountName", "admin"),
        [("notice", "pods run as service account admin instead of default")],
    ),
    Case(
        "namespace-level",
        "a looser namespace",
        namespace("restricted"),
        namespace("baseline"),
        [("danger", "security is looser: the namespace enforces Pod Security baseline instead of restricted")],
    ),
    Case(
        "namespace-level",
        "a label that goes",
        namespace("baseline"),
        namespace(None),
        [("danger", "security is looser: the namespace enforces Pod Security privileged instead of baseline")],
    ),
    Case(
        "namespace-level",
        "a new, loose namespace",
        None,
        namespace("privileged"),
        [("danger", "security is looser: the namespace enforces Pod Security privileged")],
    ),
    Case(
        "namespace-level",
        "a tighter namespace",
        namespace("baseline"),
        namespace("restricted"),
        [("notice", "the namespace enforces Pod Security restricted instead of baseline: new pods must satisfy it")],
    ),
    Case("namespace-level", "a new namespace that says nothing", None, namespace(None), []),
    Case(
        "rules",
        "more verbs",
        role(grant(["jobs"], ["get"], "batch")),
        role(grant(["jobs"], ["get", "create", "delete"], "batch"), grant(["secrets"], ["list"], "")),
        [("danger", "may now: list secrets; create and delete jobs.batch")],
    ),
    Case(
        "rules",
        "fewer verbs",
        role(grant(["pods"], ["get", "delete"])),
        role(grant(["pods"], ["get"])),
        [("info", "may no longer: delete pods")],
    ),
    Case(
        "rules",
        "everything instead of one",
        role(grant(["pods"], ["get"])),
        role(grant(["*"], ["*"], "*")),
        [("danger", "may now: do anything with everything"), ("info", "may no longer: get pods")][:1],
    ),
    Case(
        "rules",
        "one that everything held already",
        role(grant(["*"], ["*"], "*")),
        role(grant(["pods"], ["get"])),
        [("info", "may no longer: do anything with everything")],
    ),
    Case(
        "rules",
        "a named object instead of all",
        role(grant(["configmaps"], ["get"], resourceNames=["a"])),
        role(grant(["configmaps"], ["get"], resourceNames=["a", "b"])),
        [("notice", "may now: get configmaps b")],
    ),
    Case(
        "rules",
        "a URL",
        role(kind="ClusterRole"),
        role({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, kind="ClusterRole"),
        [("danger", "may now: get /metrics")],
    ),
    Case("rules", "a new role", None, role(grant(["pods"], ["get"])), [("notice", "may: get pods")]),
    Case(
        "aggregated",
        "a role that others get",
        role(kind="ClusterRole"),
        with_(role(kind="ClusterRole"), "metadata/labels", {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}),
        [("danger", "its rules are added to ClusterRole edit, for every subject bound to it")],
    ),
    Case(
        "subjects",
        "one more",
        binding("a"),
        binding("a", "b"),
        [("notice", "gives Role r in namespace team-a to ServiceAccount team-a/b")],
        (role(grant(["pods"], ["list"])),),
    ),
    Case(
        "subjects",
        "one more, to a Role that is not in the tree",
        binding("a"),
        binding("a", "b"),
        [("danger", "gives Role r in namespace team-a to ServiceAccount team-a/b")],
    ),
    Case(
        "subjects",
        "one less",
        binding("a", "b"),
        binding("a"),
        [("notice", "takes Role r in namespace team-a from ServiceAccount team-a/b")],
    ),
    Case(
        "subjects",
        "a new binding for the whole cluster",
        None,
        binding("a", kind="ClusterRoleBinding"),
        [("danger", "gives Role r in every namespace to ServiceAccount team-a/a")],
    ),
    Case(
        "subjects",
        "everybody",
        binding("a"),
        with_(binding("a"), "subjects", [{"kind": "Group", "name": "system:authenticated"}]),
        [
            ("danger", "gives Role r in namespace team-a to Group system:authenticated"),
            ("notice", "takes Role r in namespace team-a from ServiceAccount team-a/a"),
        ],
    ),
]
