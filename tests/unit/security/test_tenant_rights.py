"""Specs of a tenant give no rights, take no reserved name and open no connection without a grant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import resource_of
from kaigen.kubernetes.rights import GRANTABLE_VERBS, HARMLESS_RIGHTS
from kaigen.kubernetes.schemas import index
from kaigen.kubernetes.server_hosts import NEVER
from kaigen.pipeline.run import Run
from kaigen.tenancy.violations import violations
from tests.tenancy.rows.network_policies import METADATA, address, namespace_of, policy, port
from tests.tenancy.rows.rbac import BOUND, account, binding, role
from tests.tenancy.rows.reserved import RESERVED_SECRETS, secret_places, secret_volumes
from tests.tenancy.table import ALLOWED_RIGHTS as ALLOWED
from tests.tenancy.table import DENIED_RIGHTS as DENIED
from tests.tenancy.tenants import GITOPS, GRANTS, OTHER, TENANT, Body
from tests.unit.security.hostile import CONFIG, JOB, Repository


def config(gitops: Body | None = GITOPS, *, tenants: bool = True, **changes: object) -> str:
    """Return a kaigen.yaml with two tenants, or none."""
    teams = {"tenants": {"a": {**TENANT, **GRANTS, **changes}, "b": OTHER}} if tenants else {}
    more = {"passthrough": True, **teams, **({"gitops": gitops} if gitops else {})}
    return CONFIG.replace("namespace: ml", "namespace: team-a") + yaml.safe_dump(more)


def reports(root: Path, cases: dict[str, Body], folder: str = "specs/a", text: str = "") -> dict[str, str]:
    """Return the errors of each object in a file of its own, by case."""
    (root / folder).mkdir(parents=True)
    (root / "kaigen.yaml").write_text(text or config(), encoding="utf-8")
    for number, body in enumerate(cases.values()):
        (root / f"{folder}/{number}.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")
    found = dict.fromkeys(cases, "")
    names = [*cases]
    for each in Run.load((), load_config(root)).diagnostics:
        if each.mark is not None and Path(each.mark.file).stem.isdigit():
            found[names[int(Path(each.mark.file).stem)]] += f"{each.code}: {each.message}\n"
    return found


@pytest.fixture
def team(repository: Repository) -> Repository:
    """A repository with two tenants, a delivery by Flux, and no spec."""
    (repository.folder / "specs/evaluate.yaml").unlink()
    repository.write({"kaigen.yaml": config()})
    return repository


@pytest.fixture(scope="module")
def denied(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What kaigen reports of each object that a tenant may not have."""
    bodies = {case: body for case, (body, _) in DENIED.items()}
    return reports(tmp_path_factory.mktemp("denied"), bodies)


@pytest.mark.parametrize("case", DENIED)
def test_rights_reserved_names_and_connections_must_be_granted(denied: dict[str, str], case: str) -> None:
    assert "KG0582" in denied[case]
    assert DENIED[case][1] in denied[case]


def test_what_is_granted_is_allowed(tmp_path: Path) -> None:
    found = reports(tmp_path, ALLOWED)
    refused = {case: text for case, text in found.items() if "KG0582" in text or "KG0583" in text}
    assert not refused


@pytest.mark.parametrize(
    ("folder", "text"),
    [
        ("specs/a", config()),
        ("specs/platform", config()),
        ("specs", config(tenants=False)),
        ("specs", config({**GITOPS, "tenancy": {"serviceAccount": "deployer"}}, tenants=False)),
    ],
    ids=["tenant", "no tenant", "no tenants", "only an account"],
)
def test_no_spec_names_a_secret_of_flux(tmp_path: Path, folder: str, text: str) -> None:
    found = reports(tmp_path, RESERVED_SECRETS, folder, text)
    assert not [case for case, report in found.items() if "KG0583" not in report]


def test_a_secret_of_flux_may_be_used_where_flux_does_not_read_it(tmp_path: Path) -> None:
    """Without an account of the namespace, Flux reads its Secrets in its own namespace."""
    found = reports(tmp_path, RESERVED_SECRETS, "specs", config({**GITOPS, "tenancy": {}}, tenants=False))
    assert not [case for case, report in found.items() if "KG0583" in report]


def test_a_secret_of_flux_that_is_listed_may_be_used(tmp_path: Path) -> None:
    allowed = config(tenants=False) + "allow: {secrets: [git-password, sops-age]}\n"
    found = reports(tmp_path, RESERVED_SECRETS, "specs", allowed)
    assert not [case for case, report in found.items() if "KG0583" in report]


def test_a_listed_secret_of_flux_is_a_danger_in_the_diff(team: Repository) -> None:
    team.write({"specs/a/x.yaml": JOB})
    assert team.kaigen("render").code == 0
    team.commit()
    team.write({"kaigen.yaml": config() + "allow: {secrets: [sops-age]}\n"})
    done = team.kaigen("diff", "--base", "HEAD")
    assert "the Secret sops-age of Flux" in done.out, done.text
    assert "danger" in done.out


STEAL = JOB + "  envFrom: [{secret: git-password}]\n  volumes: {k: {secret: sops-age, mountPath: /k}}\n"


def test_a_job_that_reads_secrets_of_flux_is_refused_at_its_lines(team: Repository) -> None:
    team.write({"specs/a/steal.yaml": STEAL})
    done = team.kaigen("validate")
    assert done.code == 2, done.text
    for place, field in (("8:12", "secret"), ("9:25", "decryption.secret")):
        assert f"specs/a/steal.yaml:{place}: error[KG0583]" in done.err, done.text
        assert f"`gitops.flux.{field}`" in done.err


GO = JOB.replace("evaluate}", "go}") + "  serviceAccount: ACCOUNT\n"


@pytest.mark.parametrize("form", ["deployer", "{name: deployer}", "{name: deployer, automountToken: true}"])
def test_a_job_does_not_run_as_the_account_that_applies_objects(team: Repository, form: str) -> None:
    team.write({"specs/a/go.yaml": GO.replace("ACCOUNT", form)})
    done = team.kaigen("validate")
    assert done.code == 2, done.text
    assert "not granted the ServiceAccount `deployer`" in done.err, done.text
    assert "specs/a/go.yaml:8:" in done.err


def test_an_account_of_a_tenant_cannot_change_its_namespace(team: Repository) -> None:
    """A pod with this Role could lower the Pod Security level and then take a node."""
    rules = [*role("namespaces", "get", "patch")["rules"], *role("pods", "create")["rules"]]
    objects = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner"}},
        {**role("pods", "get"), "rules": rules},
        binding(account()),
    ]
    team.write({"specs/a/evil.yaml": yaml.safe_dump_all(objects)})
    team.write({"specs/a/go.yaml": GO.replace("ACCOUNT", "{name: runner, automountToken: true}")})
    done = team.kaigen("validate")
    assert done.code == 2, done.text
    for what in ("to get, patch `namespaces`", "to create `pods`"):
        assert f"tenant `a` is not granted the right {what}" in done.err, done.text
    assert "error[KG0582]" in done.err
    assert "specs/a/evil.yaml:" in done.err


def test_a_binding_needs_the_role_of_its_own_app(team: Repository) -> None:
    team.write({"specs/a/both.yaml": yaml.safe_dump_all(BOUND)})
    assert "KG0582" not in team.kaigen("validate").err
    team.write({"specs/a/both.yaml": yaml.safe_dump(BOUND[0]), "specs/a/other.yaml": yaml.safe_dump(BOUND[1])})
    done = team.kaigen("validate")
    assert "specs/a/other.yaml:" in done.err, done.text
    assert "not granted the role `x`, which is not a Role of this app" in done.err, done.text


@pytest.mark.parametrize("change", [{"name": "y"}, {"namespace": "team-b"}, {"namespace": "team-c"}])
def test_a_role_of_another_name_or_namespace_is_not_that_of_the_binding(
    team: Repository, change: dict[str, str]
) -> None:
    other = {**BOUND[0], "metadata": {**BOUND[0]["metadata"], **change}}
    text = config(namespaces=["team-a", "team-c"])
    team.write({"kaigen.yaml": text, "specs/a/both.yaml": yaml.safe_dump_all([other, BOUND[1]])})
    assert "which is not a Role of this app" in team.kaigen("validate").err


def _tenant(tmp_path: Path, **changes: Any) -> Tenant:
    (tmp_path / "kaigen.yaml").write_text(config(**changes), encoding="utf-8")
    return load_config(tmp_path).tenants[0]


def resources() -> list[tuple[str, str]]:
    """Return group and plural of every kind that kaigen has a schema of, and of the subresources of Kubernetes."""
    found = {
        (version.rpartition("/")[0], resource_of(kind))
        for kind, versions in index()["kinds"].items()
        for version in versions
    }
    subresources = {
        "": (
            "bindings",
            "namespaces/finalize",
            "namespaces/status",
            "nodes/proxy",
            "nodes/status",
            "persistentvolumeclaims/status",
            "pods/attach",
            "pods/binding",
            "pods/ephemeralcontainers",
            "pods/eviction",
            "pods/exec",
            "pods/log",
            "pods/portforward",
            "pods/proxy",
            "pods/resize",
            "pods/status",
            "resourcequotas/status",
            "serviceaccounts/token",
            "services/proxy",
            "services/status",
            "users",
            "groups",
        ),
        "apps": ("deployments/scale", "deployments/status", "statefulsets/scale"),
        "batch": ("jobs/status", "cronjobs/status"),
        "networking.k8s.io": ("ingresses/status",),
        "certificates.k8s.io": ("certificatesigningrequests/approval", "signers"),
        "resource.k8s.io": ("resourceclaims/status", "resourceclaims/binding"),
    }
    found |= {(group, name) for group, names in subresources.items() for name in names}
    return sorted(found)


VERBS = (*GRANTABLE_VERBS, "bind", "escalate", "impersonate", "use", "approve", "sign", "proxy", "*")
PROTECTED = frozenset(
    [
        *(("rbac.authorization.k8s.io", f"{kind}s") for kind in ("role", "rolebinding", "clusterrole")),
        ("rbac.authorization.k8s.io", "clusterrolebindings"),
        *(
            ("", name)
            for name in ("namespaces", "resourcequotas", "limitranges", "nodes", "persistentvolumes", "users", "groups")
        ),
        ("networking.k8s.io", "networkpolicies"),
        ("authentication.k8s.io", "tokenreviews"),
        ("certificates.k8s.io", "certificatesigningrequests"),
        ("certificates.k8s.io", "signers"),
    ]
)


def test_only_harmless_rights_need_no_grant(tmp_path: Path) -> None:
    tenant = _tenant(tmp_path, roles=[])
    harmless = {(right.group, right.resource, verb) for right in HARMLESS_RIGHTS for verb in right.verbs}
    for group, resource in resources():
        for verb in VERBS:
            refused = bool([*violations(role(resource, verb, group=group), "team-a", tenant)])
            assert refused is ((group, resource, verb) not in harmless), (group, resource, verb)


def test_no_grant_gives_rights_over_what_protects_a_namespace(tmp_path: Path) -> None:
    tenant = _tenant(tmp_path, roles=["*", "*.*", "*=*", "*/exec", "*.rbac.authorization.k8s.io", "roles.*"])
    given = 0
    for group, resource in resources():
        for verb in VERBS:
            if [*violations(role(resource, verb, group=group), "team-a", tenant)]:
                continue
            given += 1
            assert (group, resource) not in PROTECTED, (group, resource, verb)
            assert verb in GRANTABLE_VERBS, (group, resource, verb)
            assert not group.startswith("admissionregistration"), (group, resource)
            sub = resource.partition("/")[2]
            assert not sub or sub in ("attach", "eviction", "exec", "log", "portforward", "scale"), resource
    assert given > 200


@pytest.mark.parametrize("kind", ["secret", "limitrange", "namespace"])
def test_harmless_rights_are_of_no_kind_that_protects(kind: str) -> None:
    assert not [right for right in HARMLESS_RIGHTS if right.resource.startswith(kind)]
    assert not [right for right in HARMLESS_RIGHTS if {"*", "deletecollection"} & {*right.verbs}]
    pods = {resource_of(row.kind) for row in KINDS.values() if row.pods}
    for right in HARMLESS_RIGHTS:
        assert right.resource not in pods or {*right.verbs} <= {"get", "list", "watch"}, right


SYNCED: dict[str, tuple[Body, str]] = {
    "policy": (policy("default-deny", selected={}, ingress=[{}], egress=[{}]), "default-deny"),
    "policy of DNS": (policy("allow-dns"), "allow-dns"),
    "account": ({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer"}}, "deployer"),
    "role": ({**role("pods", "get"), "metadata": {"name": "deployer"}}, "deployer"),
    "binding": (binding(account(), name="deployer"), "deployer"),
    "quota": (
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "kaigen"}, "spec": {"hard": {}}},
        "kaigen",
    ),
    "namespace": ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}, "team-a"),
    "source": (
        {
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "GitRepository",
            "metadata": {"name": "kaigen"},
            "spec": {"interval": "1m", "url": "https://x.example.com/x.git"},
        },
        "kaigen",
    ),
    "Kustomization": (
        {
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
            "kind": "Kustomization",
            "metadata": {"name": "team-a.evaluate"},
            "spec": {"interval": "1m", "prune": True, "sourceRef": {"kind": "GitRepository", "name": "x"}},
        },
        "team-a.evaluate",
    ),
    "project": (
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "AppProject",
            "metadata": {"name": "kaigen-root", "namespace": "gitops"},
            "spec": {},
        },
        "kaigen-root",
    ),
    "settings of Argo CD": (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "gitops"}, "data": {}},
        "argocd-cm",
    ),
}
BOTH: Body = {**GITOPS, "argocd": {"namespace": "gitops"}}


@pytest.mark.parametrize("tenants", [True, False])
@pytest.mark.parametrize("case", SYNCED)
def test_no_spec_makes_an_object_that_kaigen_writes(team: Repository, case: str, tenants: bool) -> None:
    body, name = SYNCED[case]
    folder = "specs/a" if tenants else "specs"
    team.write({"kaigen.yaml": config(BOTH, tenants=tenants)})
    team.write({f"{folder}/job.yaml": JOB, f"{folder}/x.yaml": yaml.safe_dump(body)})
    done = team.kaigen("render")
    assert done.code == 2, done.text
    assert f"{folder}/x.yaml:" in done.err, done.text
    assert f"kaigen writes {body['kind']} `{name}` itself" in done.err, done.text
    assert not (team.folder / "rendered").exists()


def test_no_app_has_the_name_of_a_policy_of_the_namespace(team: Repository) -> None:
    topology = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: default-deny}
spec:
  model: {huggingFace: {repo: Qwen/Qwen2.5-0.5B-Instruct}}
  resources: {gpuType: L4}
"""
    team.write({"kaigen.yaml": config(tenants=False), "specs/chat.yaml": topology})
    done = team.kaigen("validate")
    assert "kaigen writes NetworkPolicy `default-deny` itself" in done.err, done.text


@pytest.mark.parametrize("second", ["", "team-a"])
@pytest.mark.parametrize("one_file", [True, False])
def test_two_files_of_one_identity_are_never_written(team: Repository, second: str, one_file: bool) -> None:
    maps: list[Any] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": str(number)}}
        for number in range(2)
    ]
    if second:
        maps[1]["metadata"]["namespace"] = second
    files = {"both.yaml": yaml.safe_dump_all(maps)}
    if not one_file:
        files = {f"{number}.yaml": yaml.safe_dump(body) for number, body in enumerate(maps)}
    team.write({f"specs/a/{name}": text for name, text in files.items()})
    done = team.kaigen("render")
    assert done.code == 2, done.text
    assert "ConfigMap `x`" in done.err, done.text


def test_rights_of_another_namespace_are_not_those_of_the_account(team: Repository) -> None:
    """A file of no tenant with objects in two namespaces adds to each account only what is in its namespace."""
    plain: list[Body] = [
        {**role("secrets", "get"), "metadata": {"name": "x", "namespace": "ops"}},
        {**role("nodes", "delete", kind="ClusterRole"), "metadata": {"name": "ops"}},
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "x", "namespace": "ops"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "team-a"}},
    ]
    plain[0]["rules"][0]["resourceNames"] = ["own"]
    team.write({"specs/ops.yaml": yaml.safe_dump_all(plain)})
    assert team.kaigen("render").code == 0
    folder = team.folder / "rendered"
    for namespace, expected in (("team-a", False), ("ops", True)):
        text = (folder / namespace / "_tenant/manifests/role-deployer.yaml").read_text()
        rules = yaml.safe_load(text)["rules"]
        held = {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
        assert (("secrets", "get") in held) is expected, namespace
        assert (("resourcequotas", "create") in held) is expected, namespace
        assert ("nodes", "delete") not in held


EGRESS = "network: {downloadEgress: {apiServer: [{ipBlock: {cidr: 10.96.0.1/32}}]TO}}\n"
PROXY = "network: {httpsProxy: 'http://proxy.infra.svc:3128'}\n"


@pytest.mark.parametrize(
    ("network", "peer", "ports", "granted"),
    [
        ("", "10.96.0.1/32", 443, False),
        (EGRESS, "10.96.0.1/32", 443, True),
        (EGRESS, "192.0.2.1/32", 443, True),
        (EGRESS, "192.0.2.0/24", 443, False),
        (EGRESS, "192.0.2.1/32", None, False),
        (EGRESS, "169.254.169.254/32", 80, True),
        (EGRESS, "169.254.169.254/32", 8080, True),
        (EGRESS, "169.254.169.254/32", 9000, False),
        (EGRESS, "169.254.169.252/32", 988, True),
        (EGRESS, "169.254.169.252/32", 80, False),
        *((EGRESS, cidr, 80, False) for cidr in METADATA),
        (EGRESS, "127.0.0.1/32", 443, False),
        (EGRESS, "fe80::1/128", 443, False),
        (EGRESS, "::ffff:169.254.169.254/128", 80, False),
        (EGRESS, "2001:db8::1/128", 443, True),
        (EGRESS.replace("TO", ", to: [{ipBlock: {cidr: 192.0.2.0/24}}]"), "192.0.2.0/24", 443, True),
        (EGRESS.replace("TO", ", to: [{ipBlock: {cidr: 192.0.2.0/24}}]"), "192.0.2.1/32", 443, False),
        (PROXY, "infra", None, True),
        (PROXY, "other", None, False),
    ],
)
def test_what_kaigen_yaml_opens_for_every_app_needs_no_grant(
    team: Repository, network: str, peer: str, ports: int | None, granted: bool
) -> None:
    target = address(peer) if "/" in peer else namespace_of(peer)
    rule: Body = {"to": [target], **({"ports": port(ports)} if ports else {})}
    text = config() + network.replace("TO", "")
    team.write({"kaigen.yaml": text, "specs/a/x.yaml": yaml.safe_dump(policy(egress=[rule]))})
    done = team.kaigen("validate")
    assert ("not granted connections" not in done.err) is granted, done.text


@pytest.mark.parametrize(
    ("change", "ports", "granted"),
    [({}, 443, True), ({}, None, False), ({"except": []}, 443, False), ({"except": ["10.0.0.0/8"]}, 443, False)],
)
def test_every_address_but_metadata_is_open_by_its_port_where_downloads_have_no_peers(
    team: Repository, change: Body, ports: int | None, granted: bool
) -> None:
    """The policy that kaigen itself writes for downloads from hosts outside the cluster."""
    block = {"cidr": "0.0.0.0/0", "except": [*NEVER[4]], **change}
    rule: Body = {"to": [{"ipBlock": block}], **({"ports": port(ports)} if ports else {})}
    team.write({"kaigen.yaml": config() + EGRESS.replace("TO", "")})
    team.write({"specs/a/x.yaml": yaml.safe_dump(policy(egress=[rule]))})
    done = team.kaigen("validate")
    assert ("not granted connections" not in done.err) is granted, done.text


@pytest.mark.parametrize("directions", [[], ["Ingress"], ["Egress"]])
def test_only_denied_directions_are_limited(team: Repository, directions: list[str]) -> None:
    gitops = {**GITOPS, "tenancy": {**GITOPS["tenancy"], "defaultDeny": directions}}
    team.write({"kaigen.yaml": config(gitops)})
    team.write({"specs/a/x.yaml": yaml.safe_dump(policy(ingress=[{}], egress=[{}]))})
    done = team.kaigen("validate")
    assert ("from everywhere" in done.err) is ("Ingress" in directions), done.text
    assert ("to everywhere" in done.err) is ("Egress" in directions), done.text


def test_all_ways_to_name_a_secret_are_tried() -> None:
    assert len(secret_volumes("x")) + len(secret_places("x")) >= 20


@pytest.mark.parametrize("entry", ["pods=create", "secrets", "*", "leases.coordination.k8s.io=*", "a.b.example.com"])
def test_rights_are_granted_by_globs(team: Repository, entry: str) -> None:
    team.write({"kaigen.yaml": config(roles=[entry]), "specs/a/x.yaml": JOB})
    assert team.kaigen("validate").code == 0


@pytest.mark.parametrize(
    ("field", "entry"), [("roles", "Pods"), ("roles", "pods create"), ("networks", "a/b"), ("networks", "A")]
)
def test_entries_of_another_form_are_refused(team: Repository, field: str, entry: str) -> None:
    change: dict[str, Any] = {field: [entry]}
    team.write({"kaigen.yaml": config(**change), "specs/a/x.yaml": JOB})
    done = team.kaigen("validate")
    assert (done.code, f"tenants.a.{field}" in done.err) == (2, True), done.text


def test_a_range_of_addresses_with_bits_of_a_host_is_refused(team: Repository) -> None:
    team.write({"kaigen.yaml": config(networks=["10.0.0.1/8"]), "specs/a/x.yaml": JOB})
    done = team.kaigen("validate")
    assert (done.code, "`networks`: 10.0.0.1/8" in done.err) == (2, True), done.text


def test_a_rule_with_many_combinations_is_refused_at_once(tmp_path: Path) -> None:
    many = [f"a{number}" for number in range(1000)]
    body = role("pods", "get")
    body["rules"] = [{"apiGroups": many, "resources": many, "verbs": many}]
    (text,) = reports(tmp_path, {"many": body}).values()
    assert "combinations of group, resource and verb" in text
