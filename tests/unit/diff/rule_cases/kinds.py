"""Kinds and fields that act outside of a namespace, volumes of drivers, quotas, and alerts."""

from __future__ import annotations

from typing import Any

from tests.unit.diff.diff_cases import Obj, job, obj, template
from tests.unit.diff.rule_cases.objects import Case, application, binding, flux, grant, policy, role


def quota(**hard: Any) -> Obj:
    """A ResourceQuota."""
    return obj("ResourceQuota", "q", spec={"hard": hard})


def alerts(**rules: tuple[str, str]) -> Obj:
    """A PrometheusRule with conditions and delays of alerts."""
    listed = [{"alert": name, "expr": condition, "for": delay} for name, (condition, delay) in rules.items()]
    return obj("PrometheusRule", "a", "monitoring.coreos.com/v1", spec={"groups": [{"name": "g", "rules": listed}]})


def account(**annotations: str) -> Obj:
    """A ServiceAccount with annotations."""
    found = obj("ServiceAccount", "a", automountServiceAccountToken=False)
    found["metadata"]["annotations"] = annotations
    return found


def mounting(driver: str, **attributes: str) -> Obj:
    """A Job that mounts a volume of a driver."""
    csi = {"driver": driver, "volumeAttributes": attributes}
    return job(pod=template(volumes=[{"name": "m", "csi": csi}]))


def source(**spec: Any) -> Obj:
    """A source of Flux."""
    return obj("OCIRepository", "s", "source.toolkit.fluxcd.io/v1", spec=spec)


ROLE_ARN = "arn:aws:iam::1:role/admin"
WATCH = role(grant(["pods"], ["get", "list"]))
READ_SECRETS = role(grant(["secrets"], ["get"]))
DENY = obj("NetworkPolicy", "deny", "networking.k8s.io/v1", spec={"podSelector": {}})

CASES: list[Case] = [
    Case(
        "kind",
        "an unknown kind",
        None,
        obj("Widget", "w", "example.org/v1"),
        [("danger", "kaigen does not know this kind: review what its controller does")],
    ),
    Case(
        "kind",
        "a change of an unknown kind",
        obj("Widget", "w", "example.org/v1", spec={"a": 1}),
        obj("Widget", "w", "example.org/v1", spec={"a": 2}),
        [("danger", "kaigen does not know this kind: review what its controller does")],
    ),
    Case(
        "kind",
        "the removal of a policy",
        obj("ValidatingAdmissionPolicyBinding", "p", "admissionregistration.k8s.io/v1"),
        None,
        [("danger", "is deleted; review it: it decides where a policy applies, and a narrower one accepts more")],
    ),
    Case(
        "kind",
        "an Application that kaigen did not render",
        None,
        application(source={"repoURL": "https://a", "path": "b"}, destination={"namespace": "kube-system"}),
        [("danger", "review it: Argo CD applies https://a b into namespace kube-system")],
    ),
    Case("kind", "a harmless kind", None, obj("ConfigMap", "c"), []),
    Case("kind", "a kind that another rule judges", None, role(grant(["secrets"], ["get"])), []),
    Case(
        "duplicate",
        "an object that another file has",
        None,
        account(a="b"),
        [("danger", "is also in team-a/app/manifests/1-object.yaml: one of the two replaces the other")],
        (account(),),
    ),
    Case(
        "reach",
        "a role of the cloud",
        account(),
        account(**{"eks.amazonaws.com/role-arn": ROLE_ARN}),
        [
            (
                "danger",
                "reaches outside its namespace: the annotation eks.amazonaws.com/role-arn, which is read by "
                f"webhooks for cloud identities: {ROLE_ARN}",
            )
        ],
    ),
    Case(
        "reach",
        "the same as before",
        account(**{"eks.amazonaws.com/role-arn": ROLE_ARN}),
        account(**{"eks.amazonaws.com/role-arn": ROLE_ARN, "a": "b"}),
        [],
    ),
    Case(
        "reach",
        "an annotation of which kaigen does not know who obeys it",
        account(),
        account(**{"example.com/a": "b"}),
        [("danger", "reaches outside its namespace: the annotation example.com/a: b")],
    ),
    Case(
        "field",
        "a token of an account",
        None,
        obj("Secret", "s", type="kubernetes.io/service-account-token"),
        [("danger", "a Secret of type kubernetes.io/service-account-token: a controller reads or fills it")],
    ),
    Case("field", "plain data", None, obj("Secret", "s", type="Opaque"), []),
    Case(
        "csi-volume",
        "a bucket",
        None,
        mounting("s3.csi.aws.com", bucketName="acme"),
        [("notice", "mounts s3://acme with driver s3.csi.aws.com")],
    ),
    Case(
        "csi-volume",
        "a driver that kaigen.yaml does not allow",
        job(),
        mounting("nfs.csi.k8s.io"),
        [
            (
                "danger",
                "mounts a volume with driver nfs.csi.k8s.io: kaigen.yaml does not allow the driver nfs.csi.k8s.io",
            )
        ],
    ),
    Case(
        "csi-volume",
        "the same bucket",
        mounting("s3.csi.aws.com", bucketName="acme"),
        mounting("s3.csi.aws.com", bucketName="acme", **{"authenticationSource": "pod"}),
        [],
    ),
    Case(
        "quota",
        "raised and lowered",
        quota(pods=8, cpu="4"),
        quota(pods=80, cpu="2"),
        [
            ("danger", "apps may use more: pods 80 instead of 8"),
            ("notice", 'apps may use less: cpu "2" instead of "4"'),
        ],
    ),
    Case(
        "quota",
        "one limit less and one more",
        quota(pods=8),
        quota(cpu="4"),
        [("danger", "apps may use more: pods not set instead of 8"), ("notice", 'also limits cpu "4"')],
    ),
    Case(
        "alerts",
        "one less, and one that waits longer for more",
        alerts(KaigenQueue=("q > 10", "5m"), KaigenKvCache=("c > 0.9", "5m")),
        alerts(KaigenQueue=("q > 20", "10m")),
        [
            ("notice", "alerts no longer about KaigenKvCache"),
            ("notice", "KaigenQueue waits 10m instead of 5m"),
            ("notice", "KaigenQueue has another condition: `q > 20` instead of `q > 10`"),
        ],
    ),
    Case(
        "alerts",
        "all",
        alerts(KaigenQueue=("q > 10", "5m")),
        None,
        [("notice", "alerts no longer about KaigenQueue")],
    ),
    Case("alerts", "one more", alerts(), alerts(KaigenQueue=("q > 10", "5m")), []),
    Case("quota", "another spelling", quota(cpu="1"), quota(cpu="1000m"), []),
    Case(
        "account-rights",
        "an account that reads Secrets",
        job(),
        job(pod=template(serviceAccountName="a")),
        [("danger", "pods run as service account a, which may: get secrets")],
        (READ_SECRETS, binding("a")),
    ),
    Case(
        "account-rights",
        "an account that watches pods",
        job(),
        job(pod=template(serviceAccountName="a")),
        [],
        (WATCH, binding("a")),
    ),
    Case(
        "policy-opens",
        "everything to all pods",
        None,
        policy(egress=[{"ports": [{"port": 80}]}], ingress=[{"ports": [{"port": 80}]}]),
        [
            (
                "danger",
                "allows ingress of all pods of the namespace that other policies may deny: from anywhere on port 80",
            )
        ],
        (DENY,),
    ),
    Case(
        "policy-opens",
        "the metadata of a cloud",
        policy(egress=[{}]),
        policy(egress=[{"to": [{"ipBlock": {"cidr": "169.254.169.254/32"}}]}]),
        [("danger", "allows egress to 169.254.169.254/32: addresses of the node or of the cloud")],
    ),
    Case("policy-opens", "the only policy", None, policy(egress=[{"ports": [{"port": 80}]}]), []),
    Case(
        "sync-account",
        "the account of the controller",
        flux(serviceAccountName="deployer"),
        flux(),
        [("danger", "applies as the account of the controller instead of ServiceAccount deployer")],
    ),
    Case(
        "sync-account", "the same account", flux(serviceAccountName="a"), flux(serviceAccountName="a", prune=True), []
    ),
    Case(
        "verification",
        "no signature",
        source(verify={"provider": "cosign"}),
        source(),
        [("danger", "what is synced is verified with nothing instead of {provider: cosign} (verify)")],
    ),
    Case("verification", "a signature", source(), source(verify={"provider": "cosign"}), []),
]
