"""The umbrella chart of docs/charts.md, written to a folder."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests import helm
from tests.pages import run_page

APPS = ("qwen", "chat", "evaluate")
_PAGE = Path(__file__).parents[1] / "docs" / "charts.md"


def write_umbrella(folder: Path, cache: Path) -> Path:
    """Write the files of the page, render its apps, and return the chart with its dependencies.

    Args:
        folder: an empty folder.
        cache: kaigen's cache folder.
    """
    run_page(_PAGE.read_text(encoding="utf-8"), folder, cache)
    chart = folder / "platform"
    helm.update_dependencies(chart)
    return chart


def umbrella_of(folder: Path, charts: dict[str, Path]) -> Path:
    """Write an umbrella chart.

    Args:
        folder: folder of the chart.
        charts: charts that it depends on, by their name or alias.

    Returns:
        The chart with its dependencies.
    """
    folder.mkdir(parents=True)
    dependencies = []
    for alias, chart in charts.items():
        about = yaml.safe_load((chart / "Chart.yaml").read_text())
        dependency = {
            "name": about["name"],
            "version": about["version"],
            "repository": f"file://{chart.resolve()}",
            "condition": f"{alias}.enabled",
        }
        dependencies.append(dependency | ({"alias": alias} if alias != about["name"] else {}))
    about = {"apiVersion": "v2", "name": folder.name, "version": "1.0.0", "dependencies": dependencies}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(about))
    helm.update_dependencies(folder)
    return folder
