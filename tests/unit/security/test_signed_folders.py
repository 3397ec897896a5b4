"""A signed tree with a folder of another origin is not verified."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.diagnostics.errors import CheckFailed
from kaigen.signing.tree import digests_of


def test_an_empty_folder_in_a_signed_tree_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rendered/ml").mkdir(parents=True)
    (tmp_path / "rendered/ml/job.yaml").write_text("kind: Job\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    assert list(digests_of(tmp_path, ["rendered", "empty"])) == ["rendered/ml/job.yaml"]
    # A checkout without submodules has an empty folder.
    (tmp_path / "rendered/ml/evil/manifests").mkdir(parents=True)
    with pytest.raises(CheckFailed, match="rendered/ml/evil/manifests is an empty folder"):
        digests_of(tmp_path, ["rendered"])
