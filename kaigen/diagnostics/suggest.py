"""Suggestions for unknown names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

_LONGEST = 80
_MOST_CANDIDATES = 400
"""A longer list is not searched: comparing one name takes microseconds, and a file may have thousands of wrong names.
kaigen has 291 codes, and Kubernetes 140 kinds."""

_SHORTEST_PART = 4
"""Fewest letters of a word that may be the last part of a name."""
_FIRST_PART = re.compile("[a-z]{3,}(?=[A-Z])")
"""First part of a name in camelCase."""

_SYNONYMS = {
    "rwo": "ReadWriteOnce",
    "rox": "ReadOnlyMany",
    "rwx": "ReadWriteMany",
    "rwop": "ReadWriteOncePod",
    "aws": "eks",
    "azure": "aks",
    "gcp": "gke",
    "path": "ready",
}
"""Abbreviations that kubectl prints for access modes, and names that other tools have for the same: clouds of profiles,
the path of a probe. They are not similar to what is meant, or similar to something else."""


def _folded(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "")


def _distance(left: str, right: str, most: int) -> int:
    """Edits between two words: insert, delete, replace a character, or swap two neighbours.

    Optimal string alignment, a Damerau-Levenshtein distance; counting stops above `most`.
    """
    if abs(len(left) - len(right)) > most:
        return most + 1
    before: list[int] = []
    last = list(range(len(right) + 1))
    for row, char in enumerate(left, 1):
        current = [row]
        for column, other in enumerate(right, 1):
            cost = min(last[column] + 1, current[-1] + 1, last[column - 1] + (char != other))
            if row > 1 and column > 1 and char == right[column - 2] and other == left[row - 2]:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        if min(current) > most:
            return most + 1
        before, last = last, current
    return last[-1]


def nearest(word: str, candidates: Iterable[str], *, limit: int = 1) -> list[str]:
    """Return the candidates that are most similar to a word, best first, at most `limit`.

    Case, dashes and underscores do not count. A third of the letters may differ, at least one; of a longer
    name its first three letters or more are enough. Of `maxReplicas` the first part may be the name, and of a name like
    `allowedGroups` the last part may be the word.
    Short forms that Kubernetes' tools print, and a few names of other tools, are known.
    """
    folded = _folded(word)
    names = dict.fromkeys(islice(candidates, _MOST_CANDIDATES + 1))
    if not folded or len(folded) > _LONGEST or len(names) > _MOST_CANDIDATES:
        return []
    ranked: list[tuple[int, bool, bool, str]] = []
    full = _SYNONYMS.get(folded)
    start = _FIRST_PART.match(word)
    for candidate in names:
        if candidate == full:
            ranked.append((0, False, False, candidate))
            continue
        known = _folded(candidate)
        if not known or len(known) > _LONGEST:
            continue
        most = max(1, max(len(folded), len(known)) // 3)
        distance = 0 if folded == known else _distance(folded, known, most)
        if distance > most or (distance == len(known) == len(folded)):
            if not (len(folded) >= 3 and known.startswith(folded)) and not (start and start[0] == candidate):
                continue
            distance = most + 1
        ranked.append((distance, folded[0] != known[0], not known.startswith(folded), candidate))
    return [entry[3] for entry in sorted(ranked)[:limit]] or _ending_in(word, names)


def _ending_in(word: str, candidates: Iterable[str]) -> list[str]:
    """Return the only candidate whose last part a word is: `groups` of `allowedGroups`; none if there are several."""
    end = word[:1].upper() + word[1:]
    found = [name for name in candidates if len(word) >= _SHORTEST_PART and name.endswith(end) and name != word]
    return found if len(found) == 1 else []


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return a hint with the most similar candidate; empty if none is similar."""
    found = nearest(word, candidates)
    return f"did you mean `{found[0]}`?" if found else ""
