"""The block `tenants`: what tenants must not have in common, and what each of them owns and is granted."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import ValidationError

from kaigen.config.merge import read_config
from kaigen.config.network import Network
from kaigen.config.tenant_lists import profile_classes, tenant_settings
from kaigen.config.tenant_settings import Tenant, contains, tenant_of_file, tenant_of_namespace
from kaigen.config.tenants import TenantBlock
from kaigen.kinds.block import read_block
from kaigen.kubernetes.rights import USUAL_KINDS
from tests.unit.config.reports import problems_of

REMOVE = "or a folder above or below it, too | remove it from one of the two tenants"


def tenants(**blocks: str) -> str:
    """Return the block with a line for each tenant, the first of which is line 2."""
    return "tenants:\n" + "".join(f"  {name}: {{{block}}}\n" for name, block in blocks.items())


@pytest.mark.parametrize(
    ("a", "b", "problems"),
    [
        ("folders: [x], namespaces: [a]", "folders: [y], namespaces: [b]", []),
        ("folders: [x], namespaces: [a]", "folders: [xx], namespaces: [x]", []),
        ("folders: [x, x/y], namespaces: [a]", "folders: [y], namespaces: [b]", []),
        (
            "folders: [x], namespaces: [a]",
            "folders: [x], namespaces: [b]",
            [f"3:17 KG0742 tenant `a` has `x`, {REMOVE}"],
        ),
        (
            "folders: [x], namespaces: [a]",
            "folders: [y, ./x/], namespaces: [b]",
            [f"3:20 KG0742 tenant `a` has `x`, {REMOVE}"],
        ),
        (
            "folders: [x/y], namespaces: [a]",
            "folders: [x], namespaces: [b]",
            [f"3:17 KG0742 tenant `a` has `x`, {REMOVE}"],
        ),
        (
            "folders: [x], namespaces: [a]",
            "folders: [x/y], namespaces: [b]",
            [f"3:17 KG0742 tenant `a` has `x/y`, {REMOVE}"],
        ),
        (
            "folders: [x], namespaces: [a]",
            "folders: [.], namespaces: [b]",
            [f"3:17 KG0742 tenant `a` has `.`, {REMOVE}"],
        ),
        (
            "folders: [x], namespaces: [c, a]",
            "folders: [y], namespaces: [b, a]",
            [f"3:37 KG0742 tenant `a` has `a`, {REMOVE}"],
        ),
        (
            "folders: [x], namespaces: [a]",
            "folders: ['y*', 'z?', 'z['], namespaces: [b]",
            [
                f"3:{column} KG0743 `{name}` has a wildcard, and `folders` are names | list each folder"
                for column, name in ((17, "y*"), (23, "z?"), (29, "z["))
            ],
        ),
        (
            "folders: [x], namespaces: [a]",
            "folders: [y], namespaces: [b, kube-system]",
            [
                "3:37 KG0745 `kube-system` is a namespace of Kubernetes or of a cluster service, and not of a tenant "
                "| choose another namespace"
            ],
        ),
        (
            "folders: [x], namespaces: [a]",
            "folders: [y], namespaces: [b], domains: [team.example.com, nginx.org]",
            [
                "3:66 KG0744 `nginx.org` is not a domain of a tenant: keys of it, or of a part of it, are read by "
                "Ingress controllers | list single keys in `annotations`"
            ],
        ),
    ],
)
def test_folders_and_namespaces_are_of_one_tenant(tmp_path: Path, a: str, b: str, problems: list[str]) -> None:
    text = tenants(a=a, b=b)
    if problems:
        assert problems_of(tmp_path, text) == [f"kaigen.yaml:{problem}" for problem in problems]
        return
    (tmp_path / "kaigen.yaml").write_text(text, encoding="utf-8")
    assert [tenant.name for tenant in read_config(tmp_path, "").tenants] == ["a", "b"]


LISTS = (
    "attributes",
    "options",
    "storageClasses",
    "priorityClasses",
    "hosts",
    "services",
    "addresses",
    "triggers",
    "volumes",
    "nodes",
    "drivers",
)
TEXTS = {
    **{name: [name] for name in LISTS},
    "kinds": ["Pod"],
    "buckets": ["s3://bucket"],
    "classes": ["IngressClass/nginx"],
    "images": ["r.example/*"],
    "references": ["a/b"],
    "servers": ["*.example.com"],
    "domains": ["a.example.com"],
    "annotations": ["key=value"],
    "roles": ["pods=create"],
    "networks": ["10.0.0.0/8", "monitoring"],
}
BASE = {"folders": ["./x//y/", "z"], "namespaces": ["a", "b"]}


def settings(block: dict[str, object], *common: dict[str, str], profile: str = "generic") -> Tenant:
    blocks = {"team": read_block(TenantBlock, {**BASE, **block})}
    (tenant,) = tenant_settings(blocks, {"b": "z.example/b", "a": "y.example/a"}, profile, *common)
    return tenant


def test_each_list_of_the_block_is_a_grant() -> None:
    tenant = settings({**TEXTS, "gpus": 4, "podSecurity": "baseline"})
    assert (tenant.name, tenant.folders, tenant.namespaces) == ("team", ("x/y", "z"), ("a", "b"))
    assert (tenant.gpus, tenant.pod_security) == (4, "baseline")
    expected = {name: tuple(globs) for name, globs in TEXTS.items()}
    assert tenant.grants == {**expected, "images": ("r.example/*", "y.example/a", "z.example/b")}


def test_a_tenant_is_granted_nothing_by_default_but_usual_kinds_and_kaigens_images() -> None:
    tenant = settings({})
    granted = {name: globs for name, globs in tenant.grants.items() if globs}
    assert granted == {"kinds": USUAL_KINDS, "images": ("y.example/a", "z.example/b")}
    assert tenant.grants.keys() == TEXTS.keys()
    assert (tenant.gpus, tenant.pod_security) == (None, "restricted")
    assert settings({"kinds": []}).granted("kinds") == ()


def test_what_the_file_gives_to_every_object_needs_no_grant_of_the_tenant() -> None:
    tenant = settings(
        {"annotations": ["own"], "classes": ["RuntimeClass/own"]},
        {"team": "x", "example.com/a": "1*"},
        {"example.org/b": "2"},
        profile="k3s",
    )
    assert tenant.granted("annotations") == ("own", "example.com/a=1?", "example.org/b=2")
    assert tenant.granted("classes") == ("RuntimeClass/own", "RuntimeClass/nvidia")


@pytest.mark.parametrize(("profile", "classes"), [("generic", ()), ("k3s", ("RuntimeClass/nvidia",))])
def test_a_profile_has_the_class_of_its_gpu_pods(profile: str, classes: tuple[str, ...]) -> None:
    assert profile_classes(profile) == classes


def test_without_tenants_there_are_no_settings() -> None:
    assert tenant_settings({}, {}, "generic") == ()


def test_a_range_of_addresses_must_be_one() -> None:
    assert settings({"networks": ["fd00::/64", "*"]}).granted("networks") == ("fd00::/64", "*")
    with pytest.raises(ValidationError, match=r"`networks`: 10\.0\.0\.1/8 has host bits set"):
        settings({"networks": ["a", "10.0.0.1/8"]})


DELIVERED = """\
tenants:
  a: {folders: [a], namespaces: [a, x]}
  b: {folders: [b], namespaces: [b, a-b, ab, x-1]}
  c: {folders: [c], namespaces: [a-b-c, b-c]}
"""


def test_a_tenant_knows_the_namespaces_of_others_that_begin_like_its_own(tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").write_text(DELIVERED, encoding="utf-8")
    a, b, c = read_config(tmp_path, "").tenants
    assert (a.others, b.others, c.others) == (("a-b", "x-1", "a-b-c"), ("a-b-c", "b-c"), ())
    assert (a.denied, a.network, a.reserved.accounts) == ((), None, ())


def test_a_tenant_knows_what_gitops_and_network_say(tmp_path: Path) -> None:
    text = f"""\
{DELIVERED}network: {{httpProxy: "http://proxy.example"}}
gitops:
  repository: ssh://r
  flux: {{namespace: x, secret: login}}
  tenancy: {{defaultDeny: [Egress], serviceAccount: deployer}}
"""
    (tmp_path / "kaigen.yaml").write_text(text, encoding="utf-8")
    a, b, _ = read_config(tmp_path, "").tenants
    assert (a.denied, a.network) == (("Egress",), Network(http_proxy="http://proxy.example"))
    assert (a.reserved.accounts, a.reserved.secrets) == (("deployer",), {"login": "gitops.flux.secret"})
    assert (a.reserved.appliers, b.reserved.appliers) == ((), ("x:*",))


TENANT = Tenant(
    "a",
    ("x", "y/z"),
    ("a", "b"),
    {"servers": ("s",), "volumes": ("v",), "classes": ("IngressClass/n", "*/all", "RuntimeClass/r")},
    others=("a-b",),
)


def test_a_tenant_reaches_what_is_in_its_namespaces_and_what_it_is_granted() -> None:
    assert TENANT.servers() == ("*.a.svc", "*.a.svc.cluster.local", "*.b.svc", "*.b.svc.cluster.local", "s")
    assert TENANT.volumes() == ("a-*", "b-*", "v")
    assert TENANT.own_names() == ("a-*", "b-*")
    assert TENANT.granted("hosts") == ()


@pytest.mark.parametrize(
    ("kind", "names"), [("IngressClass", ("n", "all")), ("RuntimeClass", ("all", "r")), ("GatewayClass", ("all",))]
)
def test_a_class_is_granted_by_its_kind_or_for_all_kinds(kind: str, names: tuple[str, ...]) -> None:
    assert TENANT.classes(kind) == names


@pytest.mark.parametrize(("name", "expected"), [("a-x", True), ("a-b-x", False), ("a-bx", True), ("a-b", True)])
def test_a_name_does_not_begin_with_the_namespace_of_another_tenant(name: str, expected: bool) -> None:
    assert TENANT.may_begin(name) is expected


@pytest.mark.parametrize(
    ("folder", "path", "expected"),
    [(".", "a/b", True), ("a", "a", True), ("a", "a/b", True), ("a", "ab", False), ("a/b", "a", False)],
)
def test_a_folder_contains_itself_and_what_is_below_it(folder: str, path: str, expected: bool) -> None:
    assert contains(folder, path) is expected


def test_a_file_and_a_namespace_are_of_the_tenant_that_lists_them() -> None:
    other = Tenant("o", ("y",), ("o",), {})
    every = (TENANT, other)
    files = ("x/a.yaml", "y/z/a.yaml", "y/a.yaml", "z/a.yaml")
    assert [tenant_of_file(file, every) for file in files] == [TENANT, TENANT, other, None]
    assert [tenant_of_namespace(name, every) for name in ("b", "o", "c")] == [TENANT, other, None]
