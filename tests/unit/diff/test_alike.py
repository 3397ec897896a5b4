"""Apps that change alike in several environments."""

from __future__ import annotations

from kaigen.diff.layout import group_apps
from kaigen.diff.model import AppChange, Change, FieldChange, ObjectChange


def app(root: str, namespace: str = "ml", value: int = 1) -> AppChange:
    field = FieldChange(("spec", "values"), {"a": [1]}, {"a": [value]})
    changed = ObjectChange("Job", "batch/v1", namespace, "a", "a", "changed", f"{root}/a.yaml", (field,))
    return AppChange(namespace, "a", "changed", (changed,), root=root)


def titles(*apps: AppChange) -> list[str]:
    return [title for _, title in group_apps(Change(apps, order=("dev", "staging", "prod")))]


def test_environments_of_a_change_are_in_the_order_of_promotion() -> None:
    assert titles(app("dev"), app("prod"), app("staging")) == ["ml/a in dev, staging, prod alike"]
    assert titles(app("prod"), app("dev", value=2)) == ["dev/ml/a", "prod/ml/a"]
    assert titles(app("prod", "ml-prod"), app("dev")) == ["dev/ml/a, prod/ml-prod/a alike"]


def test_what_is_in_no_environment_keeps_its_title() -> None:
    assert titles(app("")) == ["ml/a"]
    assert titles(app("old"), app("prod")) == ["old/ml/a, prod/ml/a"]
