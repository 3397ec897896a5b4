"""The price of the demo that `kaigen plan`, `cost` and `diff` say is the one that is calculated by hand."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kaigen.cli.main import run
from tests.cases import ROOT

PRICES = ROOT / "kaigen/catalog/prices.json"

# A year's contract for one L4 and one A100 of Google, as an example. The Workspace names a type of Azure.
CATALOG = """\
apiVersion: kaigen.dev/v1alpha1
kind: Catalog
currency: USD
prices: {g2-standard-4: 0.50, Standard_NC24ads_A100_v4: 2.40}
carbon: {lab: 500}
watts: {g2-standard-4: 200, Standard_NC24ads_A100_v4: 800}
"""


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """A copy of the demo with prices and carbon."""
    folder = tmp_path / "demo"
    shutil.copytree(ROOT / "examples/demo", folder)
    (folder / "catalog").mkdir()
    (folder / "catalog/prices.yaml").write_text(CATALOG)
    config = folder / "kaigen.yaml"
    config.write_text(f"region: lab\n{config.read_text()}")
    return folder


def plan(folder: Path, *arguments: str) -> Any:
    return json.loads(said(folder, "plan", *arguments, "-o", "json"))


def said(folder: Path, *arguments: str, code: int = 0) -> str:
    """Return what kaigen prints in a folder."""
    with pytest.MonkeyPatch.context() as patch, io.StringIO() as out, contextlib.redirect_stdout(out):
        patch.chdir(folder)
        assert run(list(arguments)) == code
        return out.getvalue()


def test_the_list_price_of_the_demo_is_that_of_the_table() -> None:
    (found,) = plan(ROOT / "examples/demo", "workspace-phi-4-mini", "--env", "dev", "--tokens-per-second", "1000")
    (cloud,) = [each for each in json.loads(PRICES.read_text())["clouds"].values() if each["region"] == "eastus"]
    hour = cloud["usdPerHour"]["Standard_NC24ads_A100_v4"]
    assert found["price"]["perHour"] == hour == 3.673
    # 3.6 million tokens an hour.
    assert found["price"]["perMillionTokens"] == round(3.673 / 3.6, 4) == 1.0203


def test_prices_and_carbon_of_the_demo_are_those_by_hand(demo: Path) -> None:
    (planned,) = plan(demo, "workspace-phi-4-mini", "--env", "prod", "--tokens-per-second", "1000")
    assert planned["price"]["perHour"] == 2.40
    assert planned["price"]["perMillionTokens"] == round(2.40 / 3.6, 4)
    # 0.8 kW at 500 g a kilowatt hour.
    assert planned["kgCO2ePerHour"] == 0.4
    (cost,) = json.loads(said(demo, "cost", "--env", "prod", "-o", "json"))
    assert hours(cost) == {"chat": 0.5, "workspace-phi-4-mini": 2.4, "finetune": None, "finetune-job": None}
    # One L4 of 0.2 kW, and the A100 of 0.8 kW.
    assert (cost["perHour"], cost["kgCO2ePerHour"]) == ({"least": 2.9, "most": 2.9}, {"least": 0.5, "most": 0.5})


def test_a_second_replica_of_the_demo_is_priced_in_the_diff(demo: Path) -> None:
    assert said(demo, "-q", "render", "--env", "prod") == ""
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments], cwd=demo, check=True)
    spec = demo / "specs/chat.yaml"
    spec.write_text(spec.read_text() + "  shape: {replicas: 3}\n")
    text = said(demo, "diff", "--env", "prod", "--output", "text")
    assert "its GPUs cost 1.50 USD an hour: 0.50 before" in text
    assert "its GPUs emit 0.30 kg CO2e an hour: 0.10 before" in text


def hours(cost: Any) -> dict[str, float | None]:
    """Return the price of an hour of each app at most."""
    return {each["app"].partition("/")[2]: (each["perHour"] or {}).get("most") for each in cost["apps"]}
