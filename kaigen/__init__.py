"""kaigen compiles YAML about AI work into reviewed Kubernetes manifests and Helm charts for Argo CD and Flux."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kaigen.compile.app import App
    from kaigen.config import Config, load_config
    from kaigen.load.diagnostics import Diagnostic, InputError, KaigenError
    from kaigen.pipeline import Compilation, compile_specs, load_specs, render, validate

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
    "Config": "kaigen.config",
    "load_config": "kaigen.config",
    "Diagnostic": "kaigen.load.diagnostics",
    "InputError": "kaigen.load.diagnostics",
    "KaigenError": "kaigen.load.diagnostics",
    "Compilation": "kaigen.pipeline",
    "compile_specs": "kaigen.pipeline",
    "load_specs": "kaigen.pipeline",
    "render": "kaigen.pipeline",
    "validate": "kaigen.pipeline",
}


def __getattr__(name: str) -> Any:
    # Imported when first used: the command line pays for nothing that it does not need.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kaigen' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)
