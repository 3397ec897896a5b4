"""Each rule with objects it speaks of and objects it is silent about."""

from __future__ import annotations

import pytest

from kaigen.compile.builders import frame
from kaigen.diff.objects import Obj
from kaigen.diff.rules import DOUBTS, FALLBACKS, RULES
from kaigen.diff.rules.rbac import grants
from kaigen.diff.rules.security import POD_SECURITY
from tests.unit.diff.diff_cases import claim, difference, obj, only_object, said
from tests.unit.diff.rule_cases import (
    common,
    config,
    containers,
    downloads,
    endpoint,
    engines,
    immutable,
    kinds,
    network,
    queues,
    reach,
    scaling,
    security,
    storage,
    syncers,
    workloads,
)
from tests.unit.diff.rule_cases.objects import Case

CASES = [
    case
    for module in (
        common,
        config,
        containers,
        endpoint,
        engines,
        downloads,
        immutable,
        kinds,
        network,
        queues,
        reach,
        scaling,
        security,
        storage,
        syncers,
        workloads,
    )
    for case in module.CASES
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.what}")
def test_a_rule_reports_exactly_the_expected_effects(case: Case) -> None:
    change = difference(case.old, case.new, *case.siblings)
    assert said(only_object(change).effects, case.rule) == case.expected


def test_every_rule_has_a_case_in_which_it_speaks() -> None:
    spoken = {case.rule for case in CASES if case.expected}
    assert spoken | {"passed-on"} == {rule.name for rule in (*RULES, *DOUBTS, *FALLBACKS)}


def test_what_the_compiler_marks_to_keep_is_known_to_be_kept() -> None:
    change = difference(claim(annotations=dict(frame.KEEP)), None)
    assert said(only_object(change).effects, "claim-removed") == [
        ("notice", "volume and its data are kept (no longer managed)")
    ]


def test_the_compiler_and_the_rules_mean_the_same_annotation() -> None:
    assert frame.POD_SECURITY == POD_SECURITY


def test_names_of_rules_are_unique() -> None:
    names = [rule.name for rule in (*RULES, *DOUBTS, *FALLBACKS)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.what}")
def test_every_difference_has_an_effect_and_dangers_are_first(case: Case) -> None:
    effects = only_object(difference(case.old, case.new, *case.siblings)).effects
    assert effects
    assert [effect.rank for effect in effects] == sorted((effect.rank for effect in effects), reverse=True)


@pytest.mark.parametrize(("verbs", "found"), [(100, 10_000), (101, 1)])
def test_a_rule_with_too_many_rights_counts_as_all_rights(verbs: int, found: int) -> None:
    names = [f"n{number}" for number in range(10)]
    rule = {"verbs": [f"v{number}" for number in range(verbs)], "apiGroups": names, "resources": names}
    role = Obj(obj("Role", "r", "rbac.authorization.k8s.io/v1", rules=[rule]), "role.yaml")
    assert len(grants(role)) == found
