"""kaigen compiles YAML about AI work into reviewed Kubernetes manifests and Helm charts for Argo CD and Flux."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kaigen.compile.app import App
    from kaigen.config.load import load_config
    from kaigen.config.settings import Config
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.diagnostics.errors import InputError, KaigenError
    from kaigen.pipeline.load import load_specs
    from kaigen.pipeline.result import Compilation
    from kaigen.pipeline.run import compile_specs, render, validate

__all__ = [
    "App",
    "Compilation",
    "Config",
    "Diagnostic",
    "InputError",
    "KaigenError",
    "__version__",
    "compile_specs",
    "load_config",
    "load_specs",
    "render",
    "validate",
]

_HOMES = {
    "App": "kaigen.compile.app",
    "Config": "kaigen.config.settings",
    "load_config": "kaigen.config.load",
    "Diagnostic": "kaigen.diagnostics.diagnostic",
    "InputError": "kaigen.diagnostics.errors",
    "KaigenError": "kaigen.diagnostics.errors",
    "Compilation": "kaigen.pipeline.result",
    "compile_specs": "kaigen.pipeline.run",
    "load_specs": "kaigen.pipeline.load",
    "render": "kaigen.pipeline.run",
    "validate": "kaigen.pipeline.run",
}


def __getattr__(name: str) -> Any:
    """Return a public name, importing its module on first use: start-up time is import time."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kaigen' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    """Return every name of the module, those that are not imported yet included, for `dir` and `help`."""
    return sorted({*globals(), *__all__})
