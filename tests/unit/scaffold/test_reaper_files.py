"""`kaigen init --reaper`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kaigen.check.schema_check import check_object
from kaigen.scaffold.place import Place
from kaigen.scaffold.repository import reaper_files
from kaigen.scaffold.templates import Choices
from tests import helm

CHART = Path(__file__).parents[3] / "charts" / "kaigen-reaper"
PLACE = Place(Path("ml"), Path(), "https://git.example.com/team/repository.git")


def test_the_chart_is_copied_as_it_is() -> None:
    files = reaper_files(Choices(), PLACE)
    found = {path: text for path, text in files.items() if path.startswith("charts/kaigen-reaper/")}
    assert found == {
        f"charts/kaigen-reaper/{path.relative_to(CHART)}": path.read_text()
        for path in CHART.rglob("*")
        if path.is_file()
    }
    assert found == files


@pytest.mark.parametrize("syncer", ["argocd", "flux"])
def test_objects_are_valid_and_their_values_render_the_chart(syncer: str) -> None:
    files = reaper_files(Choices(environments=("dev", "prod"), syncers={"dev": syncer}), PLACE)
    documents = list(yaml.safe_load_all(files[f"reaper/dev.{syncer}.yaml"]))
    for each in documents:
        assert check_object(each, target="1.36") == []
    assert not any(path.startswith("reaper/prod") for path in files)
    spec = documents[-1]["spec"]
    values = spec["source"]["helm"]["valuesObject"] if syncer == "argocd" else spec["values"]
    assert "ml/charts/kaigen-reaper" in str(spec)
    roles = [each for each in helm.template(CHART, "kaigen-reaper", "kaigen-system", values) if each["kind"] == "Role"]
    assert {each["metadata"]["namespace"] for each in roles} == {"ml-dev", "kaigen-system"}
