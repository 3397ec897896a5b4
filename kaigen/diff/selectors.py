"""Finds label selectors that may select the same pod, without a comparison of each with each."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from kaigen.core.json_types import Json
from kaigen.diff.objects import get_map


class SelectorIndex:
    """Label selectors, each with an owner.

    Each selector is a bit of an integer, so that a look-up takes a few operations for each label and not for each
    selector.

    Args:
        selectors: the owners with their selectors.
    """

    def __init__(self, selectors: Iterable[tuple[Hashable, Json]]) -> None:
        self._all = 0
        self._of: dict[Hashable, int] = {}
        self._with_key: dict[str, int] = {}
        self._with_label: dict[tuple[str, str], int] = {}
        for number, (owner, selector) in enumerate(selectors):
            bit = 1 << number
            self._all |= bit
            self._of[owner] = self._of.get(owner, 0) | bit
            for key, value in _labels(selector).items():
                self._with_key[key] = self._with_key.get(key, 0) | bit
                self._with_label[key, value] = self._with_label.get((key, value), 0) | bit

    def has_sharing(self, selector: Json, besides: Hashable) -> bool:
        """Return whether a selector of another owner may select a pod that this selector selects.

        Args:
            selector: the selector.
            besides: the owner whose selectors do not count.
        """
        found = self._all & ~self._of.get(besides, 0)
        for key, value in _labels(selector).items():
            found &= ~(self._with_key.get(key, 0) & ~self._with_label.get((key, value), 0))
        return found != 0


def _labels(selector: Json) -> Mapping[str, str]:
    return {key: str(value) for key, value in get_map(selector, "matchLabels").items()}


class LabelIndex:
    """Labels of pods. Each pod is a bit of an integer.

    Args:
        pods: the labels of each pod.
    """

    def __init__(self, pods: Iterable[Mapping[str, Json]]) -> None:
        self._all = 0
        self._with: dict[tuple[str, str], int] = {}
        for number, labels in enumerate(pods):
            self._all |= 1 << number
            for key, value in labels.items():
                self._with[key, str(value)] = self._with.get((key, str(value)), 0) | 1 << number

    def has_match(self, labels: Mapping[str, Json]) -> bool:
        """Return whether a pod has all of these labels."""
        found = self._all
        for key, value in labels.items():
            found &= self._with.get((key, str(value)), 0)
        return found != 0
