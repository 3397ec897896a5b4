"""Rules of the API server between fields, and the forms of fields."""

from __future__ import annotations

import pytest

from kaigen.check.policy import check_names
from kaigen.check.schema_check import check_object
from kaigen.diagnostics.diagnostic import Severity
from tests.unit.check import controller_rules
from tests.unit.check.api_rules import CASES, Refused


@pytest.mark.parametrize("case", [*CASES, *controller_rules.CASES], ids=lambda case: f"{case.kind}-{case.message}")
def test_what_the_api_server_refuses_is_an_error_at_its_field(case: Refused) -> None:
    body = case.body()
    found = {(each.where, each.message) for each in [*check_object(body), *check_names(body)] if is_error(each)}
    whole = case.where.startswith((".spec", ".subjects"))
    assert (case.where[1:] if whole else case.field + case.where, case.message) in found


def is_error(problem: object) -> bool:
    return getattr(problem, "severity", None) is Severity.ERROR
