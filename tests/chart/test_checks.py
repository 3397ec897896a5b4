"""Every object of every app is valid for an API server and passes the policies of kaigen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.check.policy import check_policy
from kaigen.check.schema_check import check_object
from kaigen.compile.builders.frame import POD_SECURITY, WAVE
from kaigen.compile.expressions import NAME_MAX, Scope, resolve
from kaigen.compile.name_expressions import full_name
from kaigen.kubernetes.pods import pod_templates
from kaigen.kubernetes.schemas import SUPPORTED_VERSIONS, is_cluster_scoped
from kaigen.pipeline.result import Compiled
from tests import helm
from tests.cases import AppCase, app_cases, write_chart

TARGETS = [target for target in SUPPORTED_VERSIONS if tuple(map(int, target.split("."))) >= (1, 34)]
"""Versions that serve every kind kaigen writes: `resource.k8s.io/v1` exists since 1.34."""

every_app = pytest.mark.parametrize("app_case", app_cases(), ids=lambda case: case.name)


def test_there_are_targets() -> None:
    assert len(TARGETS) >= 3


@every_app
def test_every_object_passes_every_check_for_every_target(app_case: AppCase) -> None:
    app = app_case.compiled.app
    scope = Scope(full_name(app.name, app.name, app.name_max), app.namespace, app_case.compiled.values)
    for item in app.objects:  # those of `helm test` too
        body: Any = resolve(item.body, scope)
        for target in TARGETS:
            found = check_object(body, target=target)
            assert [f"{item.role} {one.where}: {one.message}" for one in found] == [], target
        policy = check_policy(body, pod_security=item.pod_security or app.pod_security)
        assert [f"{item.role} {one.where}: {one.message}" for one in policy] == []


def level_of(body: Any, item: Compiled) -> str:
    """Return the Pod Security level of an object's pods: that of their annotation, or of the app."""
    annotations = (template.metadata.get("annotations") for template in pod_templates(body))
    named = (each.get(POD_SECURITY) for each in annotations if isinstance(each, dict))
    return next((str(level) for level in named if level), item.app.pod_security)


@every_app
def test_names_are_valid_in_a_release_with_the_longest_name(app_case: AppCase, tmp_path: Path) -> None:
    item = app_case.compiled
    release = "r" * NAME_MAX
    rendered = helm.template(write_chart(tmp_path, item), release, item.app.namespace, fast=True)
    for body in rendered:
        found = [*check_object(body, target=TARGETS[-1]), *check_policy(body, pod_security=level_of(body, item))]
        assert [f"{one.where}: {one.message}" for one in found] == [], body["metadata"]["name"]
    names = {(body["kind"], body["metadata"]["name"]) for body in rendered}
    same = item.app.render(item.values, release=release)
    assert {(each.body["kind"], each.body["metadata"]["name"]) for each in same} <= names


@every_app
def test_objects_have_one_namespace_and_a_wave(app_case: AppCase) -> None:
    item = app_case.compiled
    assert item.spec is not None
    first = int(item.spec.block.metadata.annotations.get(WAVE, "0"))
    for rendered in item.objects:
        metadata = rendered.body["metadata"]
        whole_clusters = is_cluster_scoped(rendered.body["apiVersion"], rendered.body["kind"])
        assert metadata.get("namespace") == (None if whole_clusters else item.app.namespace)
        assert int(metadata.get("annotations", {}).get(WAVE, "0")) == first + rendered.object.wave
