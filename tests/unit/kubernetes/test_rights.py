"""Rights of RBAC that reach nothing beyond what pods of a namespace reach anyway."""

from __future__ import annotations

import pytest

from kaigen.kubernetes.rights import HARMLESS_RIGHTS, is_harmless_right


@pytest.mark.parametrize(
    ("group", "resource", "verb"),
    [
        ("", "secrets", "get"),
        ("", "pods", "create"),
        ("", "pods/exec", "create"),
        ("", "pods/log", "create"),
        ("", "namespaces", "patch"),
        ("", "resourcequotas", "delete"),
        ("", "serviceaccounts", "impersonate"),
        ("", "serviceaccounts/token", "create"),
        ("apps", "deployments", "create"),
        ("apps", "deployments/scale", "patch"),
        ("batch", "jobs", "create"),
        ("networking.k8s.io", "networkpolicies", "delete"),
        ("rbac.authorization.k8s.io", "roles", "escalate"),
        ("rbac.authorization.k8s.io", "roles", "bind"),
        ("rbac.authorization.k8s.io", "rolebindings", "create"),
        ("*", "*", "*"),
        ("", "*", "get"),
        ("*", "pods", "get"),
        ("", "pods", "*"),
        ("", "*/log", "get"),
        ("extensions", "pods", "get"),
    ],
)
def test_a_right_that_gives_more_is_not_harmless(group: str, resource: str, verb: str) -> None:
    assert not is_harmless_right(group, resource, verb)


@pytest.mark.parametrize(
    ("group", "resource", "verb"),
    [
        ("", "pods", "list"),
        ("", "pods/log", "get"),
        ("", "configmaps", "patch"),
        ("", "persistentvolumeclaims", "create"),
        ("batch", "jobs", "watch"),
        ("coordination.k8s.io", "leases", "update"),
    ],
)
def test_what_kaigen_gives_its_own_pods_is_harmless(group: str, resource: str, verb: str) -> None:
    assert is_harmless_right(group, resource, verb)


def test_no_row_has_a_wildcard_a_secret_or_a_subresource_but_logs_and_a_scale() -> None:
    for row in HARMLESS_RIGHTS:
        assert "*" not in (row.group, row.resource)
        assert not {"*", "escalate", "bind", "impersonate", "deletecollection"} & set(row.verbs)
        assert row.resource != "secrets"
        assert "/" not in row.resource or row.resource in ("pods/log", "statefulsets/scale")


def test_only_claims_and_leases_may_be_deleted() -> None:
    # The reaper deletes claims whose time is over.
    deleted = {row.resource for row in HARMLESS_RIGHTS if "delete" in row.verbs}
    assert deleted == {"leases", "persistentvolumeclaims"}
