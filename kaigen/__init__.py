"""kaigen compiles YAML about AI work into reviewed Kubernetes manifests and Helm charts for Argo CD and Flux."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kaigen.compile.app import App
    from kaigen.config.load import load_config
    from kaigen.config.settings import Config
    from kaigen.diagnostics.diagnostic import Diagnostic, InputError, KaigenError
    from kaigen.pipeline.run import Compilation, compile_specs, load_specs, render, validate

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
    "InputError": "kaigen.diagnostics.diagnostic",
    "KaigenError": "kaigen.diagnostics.diagnostic",
    "Compilation": "kaigen.pipeline.run",
    "compile_specs": "kaigen.pipeline.run",
    "load_specs": "kaigen.pipeline.run",
    "render": "kaigen.pipeline.run",
    "validate": "kaigen.pipeline.run",
}


def __getattr__(name: str) -> Any:
    # Imported when first used: the command line pays for nothing that it does not need.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kaigen' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)
