"""The field `tune` of a Job and the settings of the program are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kaigen_train import settings as program

from kaigen.compile.job.tune import tune_params
from kaigen.kinds.block import read_block
from kaigen.kinds.tune import Tune

SCHEMA = Path(__file__).parents[3] / "schemas/job.json"


def params(**given: Any) -> dict[str, Any]:
    """Return the file that kaigen writes for a field."""
    return dict(tune_params(read_block(Tune, given)).params)


@pytest.mark.parametrize("method", ["lora", "qlora", "full"])
def test_defaults_are_the_same(method: str) -> None:
    found = params(method=method)
    assert program.parse(found) == program.parse({"method": method})
    missing = set(program.Settings().document()) - set(found)
    adapter = {"rank", "alpha", "dropout", "merge"} if method == "full" else set()
    assert missing == {"columns", "targetModules", *adapter}


def test_every_field_is_a_setting() -> None:
    assert set(Tune.__struct_fields__) - {"image", "dataset", "output"} == set(program.Settings.__dataclass_fields__)
    columns = {"prompt": "question", "completion": "answer"}
    given = {"columns": columns, "targetModules": ["q_proj"], "rank": 8, "epochs": 2.5, "merge": True, "seed": 7}
    found = program.parse(params(**given)).document()
    assert {name: found[name] for name in given} == {**given, "targetModules": ("q_proj",)}


def test_limits_and_choices_are_the_same() -> None:
    limits, choices = {}, {}
    fields = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]["Tune"]["properties"]
    for name, field in fields.items():
        for each in (field, *field.get("anyOf", [])):
            if "minimum" in each:
                limits[name] = (each["minimum"], each["maximum"])
            if "enum" in each:
                choices[name] = set(each["enum"])
    assert limits == {**program._WHOLE, **program._NUMBERS}
    assert choices == {name: set(values) for name, values in program._CHOICES.items()}
