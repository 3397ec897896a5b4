"""`OWN_KINDS` lists every kind that kaigen makes.

The test reads the code of a package that `make mutants` changes, so it is outside the folders whose tests run there.
"""

from __future__ import annotations

import re
from pathlib import Path

import kaigen.compile as compile_package
import kaigen.secrets as secrets_package
from kaigen.kubernetes.kind_table import OWN_KINDS


def test_the_kinds_of_a_project_are_all_that_kaigen_makes() -> None:
    """A kind that is new in a compiler belongs into `OWN_KINDS`, or what it made is left behind one day."""
    folders = (Path(file).parent for file in (compile_package.__file__, secrets_package.__file__))
    source = "".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py"))
    # A Secret is only referred to; nodes and volumes belong to the cluster. The last one is a file of the picker.
    others = {"Pod", "Secret", "NodePool", "PersistentVolume", "EndpointPickerConfig"}
    made = set(re.findall(r'"kind": "([A-Z][A-Za-z]+)"', source)) - others
    assert made == {kind for _, kind in OWN_KINDS}
