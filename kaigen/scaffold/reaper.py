"""The files that install kaigen-reaper: a copy of its chart, and objects for Argo CD or Flux."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kaigen.scaffold.place import Place
from kaigen.scaffold.templates import NO_REPOSITORY, Choices, fill_template

CHART = Path(__file__).parent / "charts" / "kaigen-reaper"
_FOLDER = "charts/kaigen-reaper"


def reaper_files(choices: Choices, place: Place) -> dict[str, str]:
    """Return the files in the folder of kaigen.yaml by path: the chart, and an object for each environment."""
    files = {
        f"{_FOLDER}/{path.relative_to(CHART).as_posix()}": path.read_text(encoding="utf-8")
        for path in sorted(CHART.rglob("*"))
        if path.is_file()
    }
    below = f"{place.below}/" if place.below else ""
    for environment, namespace, syncer in _installations(choices):
        file = f"reaper/{environment or 'reaper'}.{syncer}.yaml"
        words = {
            "file": file,
            "name": f"kaigen-reaper-{environment}" if environment else "kaigen-reaper",
            "namespace": namespace,
            "repository": place.repository or NO_REPOSITORY,
            "chart": f"{below}{_FOLDER}",
        }
        files[file] = fill_template(f"reaper-{syncer}.yaml", words)
    return files


def _installations(choices: Choices) -> Iterator[tuple[str, str, str]]:
    """Yield environment (empty for none), namespace and syncer of each installation."""
    everywhere = [name for name in ("argocd", "flux") if getattr(choices, name)]
    environments = [(name, choices.namespace_of(name)) for name in choices.environments]
    for name, namespace in environments or [("", choices.namespace)]:
        for syncer in [choices.syncers[name]] if name in choices.syncers else everywhere:
            yield name, namespace, syncer
