"""Images of objects have names that a node can pull."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.check.policy import check_policy, image_findings

POD: dict[str, Any] = {"containers": [{"name": "a", "image": "a//b"}]}
BAD: dict[str, dict[str, Any]] = {
    "a Pod": {"apiVersion": "v1", "kind": "Pod", "spec": POD},
    "a Deployment": {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": POD}}},
    "an init container": {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [], "initContainers": [{"name": "a", "image": "a/../b:1"}]},
    },
    "a volume": {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [], "volumes": [{"name": "v", "image": {"reference": "A/b"}}]},
    },
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_name_is_an_error_at_its_place(case: str) -> None:
    (problem,) = image_findings(BAD[case])
    found: Any = BAD[case]
    for step in problem.path:
        found = found[step]
    assert f"`{found}` is not the name of an image" == problem.message
    assert problem in check_policy(BAD[case])


@pytest.mark.parametrize("image", ["", None, 1, "a:1", "registry.example.com:5000/a/b__c:1"])
def test_other_values_are_left_to_other_checks(image: Any) -> None:
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": image}]}}
    assert list(image_findings(body)) == []


@pytest.mark.parametrize(
    ("image", "hint"),
    [
        ("ghcr.io/Acme-AI/Train:V1.4", "did you mean `ghcr.io/acme-ai/train:V1.4`?"),
        ("registry.example.com:5000/A@sha256:" + "a" * 64, "did you mean `registry.example.com:5000/a@sha256:"),
        ("a//b", "write REGISTRY/REPOSITORY:TAG"),
        ("_a/b:1", "write REGISTRY/REPOSITORY:TAG"),
        ("a:" + "t" * 140, "write REGISTRY/REPOSITORY:TAG"),
    ],
)
def test_the_hint_is_the_name_in_small_letters_where_that_is_one(image: str, hint: str) -> None:
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": image}]}}
    (problem,) = image_findings(body)
    assert problem.hint.startswith(hint)
