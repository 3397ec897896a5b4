"""The effective spec of an app: every field with its value and where that came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from kaigen.config.settings import FILE_NAME, LOCK_NAME, Config, LockRef
from kaigen.config.value_layers import Layer
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Mark, Severity
from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.problem import dotted_path
from kaigen.environments.patch import PatchedDocument, document_of, reach
from kaigen.kinds.block import Block, document_name, set_fields
from kaigen.pipeline.app_names import unknown_app
from kaigen.pipeline.run import Run

if TYPE_CHECKING:
    from kaigen.config.value_layers import Overrides
    from kaigen.kinds.spec import Spec
    from kaigen.pipeline.result import Compiled
    from kaigen.pipeline.unit import Unit


class Effective(Struct, frozen=True):
    """The effective spec of an app in an environment.

    Attributes:
        app: its name.
        namespace: its namespace.
        environment: name of the environment; empty for none.
        source: file of its spec.
        kind: the kind of the spec, as `kaigen kinds` lists it.
        document: the spec as kaigen's own kind, defaults filled in; fields without a value are left out.
        origins: where each leaf of the document came from, by its path. An empty mapping or list is a leaf.
        profile: name of the profile.
        profile_origin: where it was chosen.
        filled_in: settings of the app that the profile decided, by dotted name.
        settings: overridden settings: the value and its place, by dotted name.
    """

    app: str
    namespace: str
    environment: str
    source: str
    kind: str
    document: Mapping[str, Any]
    origins: Mapping[FieldPath, str]
    profile: str
    profile_origin: str
    filled_in: Mapping[str, Any]
    settings: Mapping[str, tuple[Any, str]]

    def as_data(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {
            "app": self.app,
            "namespace": self.namespace,
            "environment": self.environment,
            "kind": self.kind,
            "source": self.source,
            "effective": dict(self.document),
            "origins": {dotted_path(path): origin for path, origin in self.origins.items()},
            "profile": {"name": self.profile, "origin": self.profile_origin, "settings": dict(self.filled_in)},
            "settings": {name: {"value": value, "origin": origin} for name, (value, origin) in self.settings.items()},
        }


def effective_spec(app: str, config: Config, overrides: Sequence[Overrides] = ()) -> Effective:
    """Return the effective spec of one of the configured apps.

    Args:
        app: `NAME` or `NAMESPACE/NAME`.
        config: the settings of the run.
        overrides: settings by app, laid over those of kaigen.yaml.

    Raises:
        InputError: there is no such app, several apps have the name, or its spec has errors.
    """
    run = Run.load((), config, overrides)
    unit, position = _find(app, run)
    spec = unit.loaded.specs[position]
    result = unit.compiler.compile(spec)
    Diagnostics(result.diagnostics).raise_errors()
    compiled = result.compiled
    assert compiled is not None
    document = _document(spec, config)
    # Values that the lock decides have no line in a spec.
    plain = _without_lock(app, config, overrides) if config.lock.digest else spec
    written = dict(leaves(_document(plain, config)))
    metadata = spec.block.metadata
    return Effective(
        app=metadata.name,
        namespace=metadata.namespace or config.namespace,
        environment=config.environment,
        source=spec.source,
        kind=spec.entry.key,
        document=document,
        origins={
            path: _origin(spec, path, config) if written.get(path, _NOTHING) == value else LOCK_NAME
            for path, value in leaves(document)
        },
        profile=config.profile,
        profile_origin=_config_origin(config, "profile"),
        filled_in={each.path: each.default for each in compiled.app.settings if each.by_profile},
        settings=_settings(compiled, unit.compiler.overrides, config),
    )


_NOTHING = object()


def _without_lock(app: str, config: Config, overrides: Sequence[Overrides]) -> Spec:
    """Return the spec of an app as people wrote it."""
    unit, position = _find(app, Run.load((), replace(config, lock=LockRef()), overrides, use_cache=False))
    return unit.loaded.specs[position]


def leaves(node: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Return every value that contains no other, by its path."""
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    elif isinstance(node, list) and node:
        for index, value in enumerate(node):
            yield from leaves(value, (*path, index))
    else:
        yield path, node


def _find(app: str, run: Run) -> tuple[Unit, int]:
    """Return the file of an app's spec, and the position of the spec in it."""
    names = [key[1:] for unit in run.units for key in unit.defines]
    found = run.find(app)
    if not found:
        Diagnostics(run.load_diagnostics).raise_errors()
        raise unknown_app(app, names)
    if len(found) > 1:
        full = sorted(f"{namespace}/{name}" for namespace, name in names if name == app)
        raise InputError.of("KG0716", f"`{app}` is the name of several apps", hint="name one: " + ", ".join(full))
    unit, position = found[0]
    errors = [item for item in unit.loaded.diagnostics if item.severity is Severity.ERROR]
    if errors:
        raise InputError(errors)
    return unit, position


def _document(spec: Spec, config: Config) -> dict[str, Any]:
    """Return the spec with its defaults and its namespace."""
    block = spec.block
    assert isinstance(block, Block)
    data = _without_none(to_builtins(block))
    metadata = data.pop("metadata")
    name = metadata.pop("name")
    namespace = metadata.pop("namespace", config.namespace)
    return {
        "apiVersion": data.pop("apiVersion"),
        "kind": data.pop("kind"),
        "metadata": {"name": name, "namespace": namespace, **metadata},
        **data,
    }


def _without_none(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_none(value) for key, value in node.items() if value is not None}
    return [_without_none(item) for item in node] if isinstance(node, list) else node


def _origin(spec: Spec, path: FieldPath, config: Config) -> str:
    if path == ("metadata", "namespace") and spec.block.metadata.namespace is None:
        return _config_origin(config, "namespace")
    if spec.origins is None:
        return _place(spec, path, config) or f"default of {spec.block.kind}"
    decided = f"dialect {spec.entry.system}" if spec.lowered else f"`source.loader` of {spec.entry.kind}"
    if path in {("apiVersion",), ("kind",)}:
        return decided
    if path[0] == "metadata" and len(path) == 2:
        return _place(spec, path, config) or f"default of {spec.entry.key}"
    if not _is_set(spec.block, path):
        return f"default of {spec.block.kind}"
    for length in range(len(path), 0, -1):
        foreign = spec.origins.get(path[:length])
        if foreign == ("spec",):
            break  # The dialect itself decides it.
        if foreign is not None:
            place = _place(spec, (*foreign, *path[length:]), config) or _place(spec, foreign, config)
            return f"{place}, {dotted_path(foreign)}" if place else f"default of {spec.entry.key}"
    return decided


def _place(spec: Spec, path: FieldPath, config: Config) -> str:
    """Return the place where a field of the document is written; empty when it is not."""
    document = spec.document
    if reach(document.data, path)[1] < len(path):
        return ""
    layer = document.layer(path) if isinstance(document, PatchedDocument) else None
    place = _show_mark(document.mark(path))
    return f"{place} (environment {layer.environment})" if layer and layer.environment and not layer.pins else place


def _show_mark(mark: Mark) -> str:
    return f"{mark.file}:{mark.line}" if mark.line else mark.file


def _is_set(block: Any, path: FieldPath) -> bool:
    """Return whether a field is given, and not a default of its block."""
    for step in path:
        if isinstance(block, Block):
            name = next(name for name in block.__struct_fields__ if document_name(block, name) == step)
            if name not in set_fields(block):
                return False
            block = getattr(block, name)
        elif isinstance(block, dict | list):
            block = block[step]  # type: ignore[index]
    return True


def _config_origin(config: Config, name: str) -> str:
    """Return the place that sets a field of kaigen.yaml, which an environment may override."""
    document = document_of(config.root / FILE_NAME)
    if document is not None:
        for path in (("environments", config.environment, name), (name,)):
            if reach(document.data, path)[1] == len(path):
                place = _show_mark(document.mark(path))
                return f"{place} (environment {config.environment})" if len(path) > 1 else place
    return "default of kaigen"


def _settings(compiled: Compiled, layers: Sequence[Overrides], config: Config) -> dict[str, tuple[Any, str]]:
    """Return every overridden setting with the place of its last override."""
    app = compiled.app
    found: dict[str, tuple[Any, str]] = {}
    for layer in layers:
        for name in (app.name, f"{app.namespace}/{app.name}"):
            for path, _ in leaves(layer.get(name, {})):
                if not path:
                    continue
                mark = layer.place((name, *path), key=False) if isinstance(layer, Layer) else None
                place = _show_mark(mark) if mark else "--set"
                if mark and _is_of_environment(layer, config):
                    place = f"{place} (environment {config.environment})"
                known: Any = compiled.values
                for step in path:
                    known = known.get(step) if isinstance(known, dict) else known
                found[dotted_path(path)] = (known, place)
    return found


def _is_of_environment(layer: Overrides, config: Config) -> bool:
    path = ("environments", config.environment, "values")
    document = document_of(config.root / FILE_NAME)
    return document is not None and reach(document.data, path) == (layer, len(path)) and layer in config.values
