"""Promotion: pin in one environment the versions that another environment runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from kaigen.config.load import load_config
from kaigen.config.pins import pins_text
from kaigen.config.settings import Config, pins_path
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.problem import dotted_path
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.registry import find_kind
from kaigen.environments.match import pin_name
from kaigen.environments.patch import PatchedDocument
from kaigen.kinds.block import read_block
from kaigen.kinds.build import COMMIT
from kaigen.kinds.promotable import promotable_values
from kaigen.pipeline.app_reach import own_images
from kaigen.pipeline.run import Run

if TYPE_CHECKING:
    from kaigen.kinds.promotable import Found
    from kaigen.kinds.spec import Spec
    from kaigen.pipeline.unit import Unit

OWN_IMAGES = "(kaigen)"
"""Name used in place of an app in moves of kaigen's own images."""


class Move(Struct, frozen=True):
    """One value that moves.

    Attributes:
        app: as the pins file names it; `OWN_IMAGES` for kaigen's own.
        field: dotted.
        old: the value in the target environment, pinned or not; empty for none.
        new: the promoted value.
    """

    app: str
    field: str
    old: str
    new: str


class Promotion(Struct, frozen=True):
    """A planned promotion; nothing is written yet.

    Attributes:
        path: the pins file.
        moves: values with new or changed pins.
        dropped: pinned apps and fields that are there no longer, and images that no app uses.
        text: the pins file as it will be; None when it stays as it is.
        diagnostics: warnings.
    """

    path: Path
    moves: tuple[Move, ...]
    dropped: tuple[str, ...]
    text: str | None
    diagnostics: tuple[Diagnostic, ...]

    def write(self) -> None:
        """Replace the pins file at once."""
        if self.text is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            temporary.write_text(self.text, encoding="utf-8", newline="\n")
            temporary.replace(self.path)
        finally:
            temporary.unlink(missing_ok=True)


class _App(Struct, frozen=True):
    """A document with promotable fields, in one environment.

    Attributes:
        name: as the pins file has it.
        unit: its file.
        positions: of its specs in the file; several for a resource of another system that becomes several apps.
        fields: the fields by dotted name.
    """

    name: str
    unit: Unit
    positions: tuple[int, ...]
    fields: Mapping[str, Found]

    @property
    def specs(self) -> list[Spec]:
        """Its specs."""
        return [self.unit.loaded.specs[position] for position in self.positions]

    @property
    def spec(self) -> Spec:
        """The first of its specs."""
        return self.specs[0]


def plan_promotion(root: Path, source: str, target: str, apps: Sequence[str] = (), *, skip: bool = False) -> Promotion:
    """Return the values to promote from one environment to another: revisions, images, and kaigen's own images.

    Args:
        root: the repository's folder.
        source: the environment that was tested.
        target: the environment to update.
        apps: `NAME` or `NAMESPACE/NAME`; when empty all, with the images of kaigen that they use.
        skip: allow a step that `promotion` in kaigen.yaml does not list.

    Raises:
        InputError: for an unknown environment or app, a step out of order, or specs with errors.
    """
    source_config, target_config = load_config(root, source), load_config(root, target)
    check_step(source_config, source, target, skip)
    source_apps = _apps(source_config, strict=True)
    chosen = _chosen(source_apps, apps, source_config)
    absent: set[str] = set()
    target_apps = _apps(target_config, strict=False, absent=absent)
    if apps and (missing := sorted(absent & set(chosen))):
        message = f"environment `{target}` does not have {', '.join(f'`{name}`' for name in missing)}"
        raise InputError.of(
            "KG0716", message, hint=f"add `{target}` to its environments, in its spec or in kaigen.yaml"
        )
    chosen = [name for name in chosen if name not in absent]
    pins = {name: dict(fields) for name, fields in target_config.pins.items()}
    gone = sorted(name for name in pins if name in absent or not (name in source_apps or name in target_apps))
    moves: list[Move] = []
    dropped: list[str] = []
    warnings: list[Diagnostic] = []
    for name in chosen:
        fields = {
            field: found
            for field, found in source_apps[name].fields.items()
            if not (name in target_apps and _is_own(target_apps[name], found, target, warnings))
        }
        old = target_apps[name].fields if name in target_apps else {}
        pinned = pins.get(name, {})
        for field, found in fields.items():
            if pinned.get(field) == found.value:
                continue
            moves.append(Move(name, field, old[field].value if field in old else "", found.value))
            warnings += _moving(source_apps[name].spec, found)
        dropped += [f"{name} {field}" for field in sorted(pinned.keys() - fields.keys())]
        pins[name] = {field: found.value for field, found in fields.items()}
    images = dict(target_config.pinned_images)
    if not apps:
        used = _used_images(source_config, source_apps, target_config, target_apps)
        for image, ref in sorted(source_config.plain_images.items()):
            if image not in used:
                if images.pop(image, None) is not None:
                    dropped.append(f"{OWN_IMAGES} images.{image}")
                continue
            if image in target_config.named_images or images.get(image) == ref:
                continue
            moves.append(Move(OWN_IMAGES, f"images.{image}", target_config.plain_images.get(image, ""), ref))
            images[image] = ref
    for name in gone:
        del pins[name]
    text = None
    if moves or dropped or gone:
        text = pins_text(pins, images)
    return Promotion(
        pins_path(root, target), tuple(moves), tuple([*gone, *dropped]), text, tuple(dict.fromkeys(warnings))
    )


def check_step(config: Config, source: str, target: str, skip: bool) -> None:
    """Check that a step is in the order of promotion.

    Args:
        config: the settings of the repository.
        source: the environment to promote from.
        target: the environment to promote to.
        skip: allow any step between two environments.

    Raises:
        InputError: KG0714.
    """
    if source == target:
        raise InputError.of("KG0714", f"`{source}` cannot be promoted to itself")
    order = config.promotion
    if not order or skip:
        return
    listed = " → ".join(order)
    for name in (source, target):
        if name not in order:
            hint = "add it to `promotion` in kaigen.yaml, or allow the step with --skip"
            raise InputError.of("KG0714", f"`{name}` is not in the order of promotion: {listed}", hint=hint)
    if order.index(target) != order.index(source) + 1:
        place = order.index(target)
        right = f"`{target}` gets its changes from `{order[place - 1]}`" if place else f"`{target}` comes first"
        raise InputError.of(
            "KG0714",
            f"`{source}` is not just before `{target}` in the order of promotion: {listed}",
            hint=f"{right}; allow the step with --skip",
        )


def _apps(config: Config, *, strict: bool, absent: set[str] | None = None) -> dict[str, _App]:
    """The apps of an environment by their names in pins files; `absent` receives those that it does not have."""
    run = Run.load((), config, use_cache=False)
    errors = [item for item in run.load_diagnostics if item.severity is Severity.ERROR]
    if strict and errors:
        raise InputError(errors)
    found: dict[str, _App] = {}
    for unit in run.units:
        if absent is not None:
            kinds = [(document, find_kind(document.apiVersion, document.kind)) for document in unit.parsed.absent]
            absent |= {pin_name(document, kind) for document, kind in kinds if kind is not None}
        for position, spec in enumerate(unit.loaded.specs):
            document: Any = spec.document
            base = document.base if isinstance(document, PatchedDocument) else document
            block = read_block(spec.entry.model(), document.data)
            fields = {item.name: item for item in promotable_values(block)}
            name = pin_name(base, spec.entry)
            app = found.setdefault(name, _App(name, unit, (), fields))
            if app.unit is unit and (not app.positions or app.spec.document is spec.document):
                found[name] = replace(app, positions=(*app.positions, position))
    return found


def _used_images(
    source_config: Config, source_apps: Mapping[str, _App], target_config: Config, target_apps: Mapping[str, _App]
) -> set[str]:
    """Names of kaigen's own images that apps have in their objects in the environment that gets them.

    An app that cannot be compiled there yet, perhaps because it needs the promotion, counts as in the source. When
    one can be made in neither, every image counts.
    """
    used = _own_images(source_config, source_apps) | _own_images(target_config, target_apps)
    return set().union(*used.values()) if source_apps.keys() <= used.keys() else set(source_config.images)


def _own_images(config: Config, apps: Mapping[str, _App]) -> dict[str, set[str]]:
    """kaigen's own images that each app has in its objects, by name; without apps that cannot be made.

    Those of `helm test` count where charts are written or published.
    """
    charts = config.format != "manifests" or (config.publish is not None and config.publish.charts is not None)
    found: dict[str, set[str]] = {}
    for name, app in apps.items():
        made = [app.unit.compiler.compile(spec).compiled for spec in app.specs]
        if None not in made:
            objects = [
                item
                for compiled in made
                if compiled is not None
                for item in compiled.app.render(compiled.values, tests=charts)
            ]
            found[name] = set(own_images(objects, app.unit.compiler.context))
    return found


def _chosen(apps: Mapping[str, _App], requested: Sequence[str], config: Config) -> list[str]:
    """The apps that are meant, by their names in pins files."""
    if not requested:
        return sorted(apps)
    forms: dict[str, list[str]] = {}
    for name, app in apps.items():
        for form in {name, *(form for spec in app.specs for form in _forms(spec, config))}:
            forms.setdefault(form, []).append(name)
    unknown = [
        Diagnostic("KG0716", f"no app `{name}`", None, did_you_mean(name, forms) or _listed(apps))
        for name in requested
        if name not in forms
    ]
    if unknown:
        raise InputError(unknown)
    return sorted({name for form in requested for name in forms[form]})


def _forms(spec: Spec, config: Config) -> tuple[str, str]:
    """The names of an app on the command line."""
    metadata = spec.block.metadata
    return metadata.name, f"{metadata.namespace or config.namespace}/{metadata.name}"


def _listed(names: Iterable[str]) -> str:
    return "apps: " + (", ".join(sorted(names)) or "none")


def _is_own(app: _App, found: Found, target: str, warnings: list[Diagnostic]) -> bool:
    """Whether the environment gets its own value for a field from kaigen.yaml, or for one that it belongs to."""
    document = app.spec.document
    if not isinstance(document, PatchedDocument):
        return False
    for path in _together(app, found):
        for layer in document.layers:
            if layer.environment == target and not layer.pins and layer.sets(path):
                warnings.append(
                    Diagnostic(
                        "KG0717",
                        f"`{app.name}` keeps the `{dotted_path(path)}` that `{target}` has as its own",
                        layer.place.mark(path),
                        "delete the override to have the field promoted",
                        Severity.WARNING,
                    )
                )
                return True
    return False


def _together(app: _App, found: Found) -> Iterator[tuple[str | int, ...]]:
    """The field, and for a revision and its repository the other one too: neither means anything alone."""
    yield found.path
    if found.marker.needs != "digest":
        for other in app.fields.values():
            if other.marker.needs != "digest" and other.path != found.path and other.path[:-1] == found.path[:-1]:
                yield other.path


def _moving(spec: Spec, found: Found) -> list[Diagnostic]:
    """A warning for a name whose meaning may change without review."""
    value, needs = found.value, found.marker.needs
    if needs == "commit" and not COMMIT.fullmatch(value):
        message = f"`{value}` is not a commit, so what is promoted may change without review"
        hint = "name the commit, 40 hex digits, in the spec"
    elif needs == "digest" and _is_moving_image(value):
        message = f"`{value}` has neither a digest nor a version, so what is promoted may change without review"
        hint = "name the image by its digest, or at least by a version"
    else:
        return []
    mark = spec.document.mark(found.path)
    return [Diagnostic("KG0715", message, mark, hint, Severity.WARNING, dotted_path(found.path))]


def _is_moving_image(ref: str) -> bool:
    name, _, digest = ref.partition("@")
    _, _, tag = name.rpartition("/")[2].partition(":")
    return not digest and tag in {"", "latest"}
