"""kaigen compiles YAML about AI work into reviewed Kubernetes manifests and Helm charts for Argo CD and Flux.

    import kaigen

    files = kaigen.render(["specs"], kaigen.load_config("."))        # path -> bytes; nothing is written
    diagnostics, _ = kaigen.validate(kaigen.Model(metadata={...}, spec={...}))

Specs are files, objects (`Model`, `Dataset`, `Job`, `Topology`, `Notebook`, `Alias`) or dicts with the content of a
YAML document. docs/library.md has examples.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from kaigen.compile.app import App
    from kaigen.config.load import load_config
    from kaigen.config.settings import Config
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.diagnostics.errors import InputError, KaigenError
    from kaigen.diagnostics.report import render_report
    from kaigen.diff.compare import compare
    from kaigen.diff.text import render_text
    from kaigen.graph import build_graph, render_graph
    from kaigen.kinds.alias import Alias
    from kaigen.kinds.base import Metadata
    from kaigen.kinds.endpoint import Endpoint
    from kaigen.kinds.job import Job
    from kaigen.kinds.model import Dataset, Model
    from kaigen.kinds.notebook import Notebook
    from kaigen.kinds.topology import Topology
    from kaigen.pipeline.result import Compilation
    from kaigen.pipeline.run import Run, compile_specs, render
    from kaigen.pipeline.validate import validate

__all__ = [
    "Alias",
    "App",
    "Compilation",
    "Config",
    "Dataset",
    "Diagnostic",
    "Endpoint",
    "InputError",
    "Job",
    "KaigenError",
    "Metadata",
    "Model",
    "Notebook",
    "Run",
    "Topology",
    "__version__",
    "build_graph",
    "compare",
    "compile_specs",
    "load_config",
    "render",
    "render_graph",
    "render_report",
    "render_text",
    "validate",
]

_HOMES = {
    "Alias": "kaigen.kinds.alias",
    "App": "kaigen.compile.app",
    "Config": "kaigen.config.settings",
    "load_config": "kaigen.config.load",
    "Diagnostic": "kaigen.diagnostics.diagnostic",
    "InputError": "kaigen.diagnostics.errors",
    "KaigenError": "kaigen.diagnostics.errors",
    "Metadata": "kaigen.kinds.base",
    "Job": "kaigen.kinds.job",
    "Model": "kaigen.kinds.model",
    "Notebook": "kaigen.kinds.notebook",
    "Dataset": "kaigen.kinds.model",
    "Endpoint": "kaigen.kinds.endpoint",
    "Topology": "kaigen.kinds.topology",
    "render_report": "kaigen.diagnostics.report",
    "compare": "kaigen.diff.compare",
    "render_text": "kaigen.diff.text",
    "build_graph": "kaigen.graph",
    "render_graph": "kaigen.graph",
    "Compilation": "kaigen.pipeline.result",
    "compile_specs": "kaigen.pipeline.run",
    "Run": "kaigen.pipeline.run",
    "render": "kaigen.pipeline.run",
    "validate": "kaigen.pipeline.validate",
}


def __getattr__(name: str) -> Any:
    """Return a public name, importing its module on first use: start-up time is import time."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kaigen' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    """Return the public names, those that are not imported yet included, for `dir`, `help` and completion."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
