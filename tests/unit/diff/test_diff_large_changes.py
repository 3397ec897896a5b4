"""A change of many objects takes time in proportion to their number: the calls of functions are counted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import pytest

from kaigen.diff import compare
from tests.unit.diff.diff_cases import only_object

FOLDER = "ml/app/manifests"
SIZES = (70, 280)
MOST = 5.5
"""Of four times as many objects; four times as many calls are in proportion, and sixteen are quadratic."""

Tree = Mapping[str, bytes]
Make = Callable[[int], tuple[Tree, Tree]]


def objects(api: str, kind: str, count: int, rest: Callable[[int], str], namespace: str = "ml") -> str:
    head = f"apiVersion: {api}\nkind: {kind}\n"
    return "".join(
        f"{head}metadata: {{name: {kind.lower()}-{n}, namespace: {namespace}}}\n{rest(n)}\n---\n" for n in range(count)
    )


def tree(text: str, path: str = f"{FOLDER}/objects.yaml") -> Tree:
    return {path: text.encode()} if text else {}


def configs(count: int, text: str) -> str:
    return objects("v1", "ConfigMap", count, lambda _: f"data: {{a: {text}}}")


def role(count: int, verb: str, names: int = 5) -> str:
    lines = [
        f"- {{apiGroups: [''], resources: [secrets], verbs: [{verb}], "
        f"resourceNames: [{', '.join(f'n{n}-{m}' for m in range(names))}]}}\n"
        for n in range(count)
    ]
    head = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: ml}\nrules:\n"
    return head + "".join(lines)


def policies(count: int, labels: Callable[[int], str]) -> str:
    rest = "policyTypes: [Ingress], ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/24}}]}]"
    return objects(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        count,
        lambda n: f"spec: {{podSelector: {{matchLabels: {{{labels(n)}}}}}, {rest}}}",
    )


def policy(count: int, net: int) -> str:
    rules = "".join(f"  - {{from: [{{ipBlock: {{cidr: 10.{net}.{n // 250}.{n % 250}/32}}}}]}}\n" for n in range(count))
    head = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p, namespace: ml}\n"
    return f"{head}spec:\n  podSelector: {{}}\n  ingress:\n{rules}"


def deployments(count: int, tag: int) -> str:
    return objects(
        "apps/v1",
        "Deployment",
        count,
        lambda n: (
            f"spec: {{template: {{spec: {{serviceAccountName: s{n}, containers: "
            f"[{{name: a, image: 'a:{tag}', envFrom: [{{configMapRef: {{name: configmap-{n}}}}}]}}]}}}}}}"
        ),
    )


def bindings(count: int) -> str:
    return objects(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        count,
        lambda n: f"roleRef: {{kind: Role, name: r}}\nsubjects: [{{kind: ServiceAccount, name: s{n}}}]",
    )


def subjects(count: int, prefix: str) -> str:
    lines = "".join(f"- {{kind: ServiceAccount, name: {prefix}{n}}}\n" for n in range(count))
    return bindings(1).split("subjects")[0] + f"subjects:\n{lines}"


def applications(count: int, revision: int) -> str:
    source = "repoURL: 'https://git.example', targetRevision"
    return objects(
        "argoproj.io/v1alpha1",
        "Application",
        count,
        lambda n: (
            f"spec: {{project: ml, destination: {{namespace: ml}}, "
            f"source: {{path: ml/a{n}/manifests, {source}: r{revision + n}}}}}"
        ),
        namespace="argocd",
    )


def project(count: int, prefix: str) -> str:
    lines = "".join(f"  - {{namespace: {prefix}{n}, server: x}}\n" for n in range(count))
    head = "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: p, namespace: argocd}\n"
    return f"{head}spec:\n  destinations:\n{lines}"


def external(count: int, address: int) -> str:
    return objects("v1", "Service", count, lambda _: f"spec: {{externalIPs: [10.0.0.{address}]}}")


CASES: Mapping[str, Make] = {
    "changed ConfigMaps": lambda n: (tree(configs(n, "x")), tree(configs(n, "y"))),
    "changed ConfigMaps that Deployments read": lambda n: (
        tree(configs(n, "x") + deployments(n, 1)),
        tree(configs(n, "y") + deployments(n, 1)),
    ),
    "new ConfigMaps": lambda n: ({}, tree(configs(n, "x"))),
    "removed ConfigMaps": lambda n: (tree(configs(n, "x")), {}),
    "ConfigMaps of another app": lambda n: (tree(configs(n, "x")), tree(configs(n, "y"), "ml/other/manifests/o.yaml")),
    "apps with a ConfigMap": lambda n: (
        {f"ml/a{m}/manifests/c.yaml": configs(1, "x").encode() for m in range(n)},
        {f"ml/a{m}/manifests/c.yaml": configs(1, "y").encode() for m in range(n)},
    ),
    "a Role with names": lambda n: (tree(role(n, "get")), tree(role(n, "list"))),
    "a Role with fewer verbs": lambda n: (tree(role(n, "'*'")), tree(role(n, "list"))),
    "new policies without a common pod": lambda n: ({}, tree(policies(n, lambda m: f"a: x{m}"))),
    "new policies with common pods": lambda n: ({}, tree(policies(n, lambda m: f"a{m}: x"))),
    "rules of a policy": lambda n: (tree(policy(n, 1)), tree(policy(n, 2))),
    "changed Deployments": lambda n: (tree(deployments(n, 1)), tree(deployments(n, 2))),
    "new Deployments with an account": lambda n: (
        {},
        tree(role(20, "get") + "---\n" + deployments(n, 1) + bindings(n)),
    ),
    "subjects of a binding": lambda n: (tree(subjects(n, "a")), tree(subjects(n, "b"))),
    "Applications": lambda n: (tree(applications(n, 0), "_argocd/a.yaml"), tree(applications(n, n), "_argocd/a.yaml")),
    "destinations of a project": lambda n: (
        tree(project(n, "a"), "_argocd/p.yaml"),
        tree(project(n, "b"), "_argocd/p.yaml"),
    ),
    "Services with addresses": lambda n: (tree(external(n, 1)), tree(external(n, 2))),
}


def calls(old: Tree, new: Tree) -> int:
    """Return how many functions a comparison calls."""
    count = 0

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        compare(old, new)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("name", CASES)
def test_the_calls_of_a_comparison_are_in_proportion_to_the_objects(name: str) -> None:
    compare(*CASES[name](1))
    small, large = (calls(*CASES[name](size)) for size in SIZES)
    assert large / small < MOST


def test_a_role_with_more_permissions_than_are_compared_counts_as_everything() -> None:
    change = only_object(compare({}, tree(role(2001, "get", 100))))
    assert [effect.text for effect in change.effects if "do anything" in effect.text]


def test_users_of_a_config_are_found_among_many() -> None:
    app = configs(100, "x") + deployments(100, 1)
    (found,) = compare(tree(app), tree(app.replace("{a: x}", "{a: y}", 1))).apps
    (change,) = found.objects
    assert change.name == "configmap-0"
    assert change.effects[0].text.startswith("Deployment deployment-0 keeps the old values until restarted")
