"""What the writer and the judge of a tree share about its folders."""

from __future__ import annotations

import pytest

from kaigen.gitops.layout import guard_component, guard_folder, is_guard_component

FOLDER = guard_folder("ml", "chat.v1", "ml/qwen")


def test_the_component_that_is_written_is_the_one_that_is_known() -> None:
    assert is_guard_component(guard_component(FOLDER), "ml", "chat.v1")


@pytest.mark.parametrize(
    ("component", "namespace", "app"),
    [
        (guard_component(FOLDER), "ml", "chat"),
        (guard_component(FOLDER), "other", "chat.v1"),
        (guard_component(FOLDER).replace("chat.v1", "chatxv1"), "ml", "chat.v1"),
        (f"../{guard_component(FOLDER)}", "ml", "chat.v1"),
        (guard_component(f"{FOLDER}/more"), "ml", "chat.v1"),
        (guard_component(FOLDER[:-1]), "ml", "chat.v1"),
    ],
)
def test_another_component_is_not(component: str, namespace: str, app: str) -> None:
    assert not is_guard_component(component, namespace, app)
