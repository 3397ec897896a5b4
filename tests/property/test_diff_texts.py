"""The worst item of a list is in the text of `kaigen diff`, whatever else is in the list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaigen.diff import AppChange, Change, Effect, render_markdown, render_text
from kaigen.diff.formatting import gravest, listing, weight
from kaigen.diff.rules.rbac import describe
from tests.unit.diff.diff_cases import container, deployment, difference, obj, only_object, said, template

WORST = (
    "container run is privileged",
    "mounts / of the node (hostPath)",
    "pod uses the network namespace of the node (hostNetwork)",
    "pod uses the PID namespace of the node (hostPID)",
    "container run adds the capability SYS_ADMIN",
    "do anything with everything",
    "* cluster-wide",
    "get secrets",
    "escalate roles.rbac.authorization.k8s.io",
    "bind clusterroles.rbac.authorization.k8s.io",
    "impersonate users",
    "ClusterRole cluster-admin",
    "169.254.169.254/32",
    "127.0.0.1/32",
    "::1/128",
    "0.0.0.0/0",
    "::/0",
    "anywhere on every port",
    "create pods/exec",
)
FILLERS = st.lists(
    st.one_of(
        st.text(max_size=12),
        st.sampled_from(["container run adds the capability CHOWN", "get configmaps", "list pods", "a", "team-b"]),
        st.sampled_from(WORST),
    ),
    max_size=60,
)
VERBS = st.sampled_from(["get", "list", "watch", "create", "patch", "update", "delete", "use"])
RESOURCES = st.sampled_from([f"things{number}" for number in range(40)])
WORST_RIGHTS = (
    (("", "secrets", "*", "*"), "do anything with secrets"),
    (("rbac.authorization.k8s.io", "roles", "*", "escalate"), "escalate"),
    (("rbac.authorization.k8s.io", "clusterroles", "*", "bind"), "bind"),
    (("", "users", "*", "impersonate"), "impersonate"),
    (("*", "*", "*", "*"), "everything"),
    (("", "pods/exec", "*", "create"), "pods/exec"),
)


@pytest.mark.parametrize("worst", WORST)
@given(fillers=FILLERS, place=st.integers(0, 60), limit=st.integers(1, 8))
def test_the_worst_item_of_a_list_is_in_the_text(worst: str, fillers: list[str], place: int, limit: int) -> None:
    items = [*fillers[:place], worst, *fillers[place:]]
    assert weight(worst) > 0
    heavier = {item for item in items if weight(item) > weight(worst)}
    if not heavier:
        assert worst in listing(items, limit)
    shown = gravest(list(dict.fromkeys(items)), limit)
    assert weight(shown[0]) == max(map(weight, items))


@pytest.mark.parametrize(("right", "text"), WORST_RIGHTS)
@given(others=st.lists(st.tuples(st.just(""), RESOURCES, st.just("*"), VERBS), max_size=80))
def test_the_worst_right_of_a_role_is_in_the_text(
    right: tuple[str, str, str, str], text: str, others: list[tuple[str, str, str, str]]
) -> None:
    assert text in describe([*others, right])


@pytest.mark.parametrize("count", [0, 1, 3, 8, 60])
@pytest.mark.parametrize("name", ["SYS_ADMIN", "NET_ADMIN", "ALL", "BPF"])
def test_no_number_of_capabilities_hides_the_worst(name: str, count: int) -> None:
    added = [f"CAP{number}" for number in range(count)]
    capabilities = {"drop": ["ALL"], "add": [*added, name]}
    pod = template(container(securityContext={"capabilities": capabilities, "privileged": True}))
    effects = only_object(difference(deployment(), deployment(pod=pod))).effects
    ((_, text),) = said(effects, "pod-security")
    assert f"adds the capability {name}" in text
    assert "is privileged" in text


def test_the_worst_rule_of_a_role_is_shown_among_many() -> None:
    rules = [{"apiGroups": [f"g{n}.example"], "resources": ["things"], "verbs": [f"v{n}"]} for n in range(30)]
    rules.append({"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]})
    rules.append({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate"]})
    effects = only_object(difference(None, obj("Role", "r", "rbac.authorization.k8s.io/v1", rules=rules))).effects
    ((_, text),) = said(effects, "rules")
    assert "do anything with secrets" in text
    assert "escalate" in text


def test_the_worst_danger_of_an_app_is_in_its_summary() -> None:
    effects = [Effect("danger", f"allows more: port {number}", "policy-changed") for number in range(30)]
    effects.append(Effect("danger", "security is looser: container run is privileged", "pod-security"))
    app = AppChange("ml", "chat", "changed", effects=tuple(effects))
    for text in (render_text(Change((app,))), render_markdown(Change((app,)))):
        assert "is privileged" in text.partition("more effect")[0]
