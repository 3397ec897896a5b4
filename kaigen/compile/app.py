"""Apps: what one spec becomes, as objects with expressions in them and the settings that they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from kaigen.compile.expressions import DIGEST_LENGTH, NAME_MAX, Release, Scope, Setting, Tree, find_settings, resolve
from kaigen.compile.field_expressions import ContentName, HashedName
from kaigen.compile.name_expressions import full_name
from kaigen.core.json_types import FieldPath, Json
from kaigen.diagnostics.diagnostic import Mark
from kaigen.kubernetes.kind_table import longest_name
from kaigen.kubernetes.pod_security import LEVELS

RESERVED = "kustomization"
"""The file that lists the others has this name."""

Place = Callable[[FieldPath], Mark | None]
"""Returns where a field of an object was written; None where kaigen made it."""


class Object(Struct, frozen=True):
    """One Kubernetes object of an app, with expressions in it.

    Attributes:
        role: file name without its extension, unique in the app and stable: `job-run`, `pvc-output`.
        body: the object; its keys are written in their order.
        wave: 0 config, 1 acquisition, 2 conversion, 3 workloads, 4 routes; a claim has that of its first pod.
        when: setting that must be true for the object to exist; None for always.
        test: whether it belongs to `helm test`, and so to the chart only.
        verbatim: the text of its file, which is copied byte for byte; such an object is in no chart.
        ending: extension of its file.
        place: where its fields were written by a user's template or patch; None for an object of kaigen's.
        pod_security: Pod Security level that its pods must satisfy; None for that of the app.
    """

    role: str
    body: Mapping[str, Tree]
    wave: int = 0
    when: Setting | None = None
    test: bool = False
    verbatim: str = ""
    ending: str = "yaml"
    place: Place | None = None
    pod_security: str | None = None

    @property
    def kind(self) -> str:
        """The object's kind."""
        return str(self.body["kind"])

    @property
    def name(self) -> Tree:
        """The object's name."""
        return self.body["metadata"]["name"]  # type: ignore[index, call-overload]

    @property
    def hashed(self) -> HashedName | None:
        """The object's name if it ends in a hash of its spec, else None."""
        name = self.name
        return name if isinstance(name, HashedName) and name.spec == self.body.get("spec") else None

    def __hash__(self) -> int:
        return hash((self.role, self.wave, self.when, self.test, self.verbatim, self.ending, self.place))


class Note(Struct, frozen=True):
    """Something a reader of the app should know; shown by `render -v`, NOTES.txt and the chart's README."""

    text: str
    path: FieldPath = ()


class App(Struct, frozen=True):
    """What one spec becomes: written, reviewed, synced and deleted together.

    Attributes:
        name: name of the app, and of its Helm release in plain manifests.
        namespace: namespace of the app.
        kind: the kind that the spec was written in: `Model`, or a dialect's.
        source: the spec's file, relative to the repository; empty for specs that were not read from one.
        objects: the objects, in the order of their waves.
        settings: every setting that the objects use, in the order of `values.yaml`.
        pod_security: Pod Security level that its pods must satisfy, except those of objects with another one.
        summary: one sentence about the app.
        version: version of the chart (SemVer).
        digest_in_version: append a digest of its content to the version of the chart.
        app_version: commit of the model; empty when unknown.
        notes: what kaigen decided, for readers.
        labels: common labels of every object.
        selector_labels: labels that select its pods.
        external_objects: kind and name of objects that it refers to but does not make.
        built: images that its Jobs build, and nobody pulls before.
    """

    name: str
    namespace: str
    kind: str
    source: str
    objects: tuple[Object, ...]
    settings: tuple[Setting, ...]
    pod_security: str = "restricted"
    summary: str = ""
    version: str = "0.1.0"
    digest_in_version: bool = False
    app_version: str = ""
    notes: tuple[Note, ...] = ()
    labels: Mapping[str, Tree] = field(default_factory=dict)
    selector_labels: Mapping[str, Tree] = field(default_factory=dict)
    external_objects: tuple[tuple[str, str], ...] = ()
    built: tuple[str, ...] = ()

    @property
    def lowest_pod_security(self) -> str:
        """Pod Security level that its namespace must allow."""
        levels = {self.pod_security, *(item.pod_security or self.pod_security for item in self.objects)}
        return next(level for level in LEVELS if level in levels)

    def default_values(self) -> dict[str, Json]:
        """Return the settings' defaults as the nested mapping of `values.yaml`."""
        values: dict[str, Any] = {}
        for setting in self.settings:
            here = values
            *parents, last = setting.keys
            for key in parents:
                here = here.setdefault(key, {})
            here[last] = setting.default
        return values

    @property
    def name_max(self) -> int:
        """Most characters of the beginning of all names, so that the names of all objects are valid."""
        limit = NAME_MAX
        for item in self.objects:
            name = item.name
            if isinstance(name, Release | ContentName):
                hashed = DIGEST_LENGTH + 1 if isinstance(name, ContentName) else 0
                fixed = hashed + len(name.prefix) if isinstance(name, Release) else hashed
                limit = min(limit, longest_name(item.body) - len(name.suffix) - fixed)  # type: ignore[arg-type]
            elif isinstance(name, HashedName):
                limit = min(limit, longest_name(item.body) - len(name.suffix) - DIGEST_LENGTH - 1)  # type: ignore[arg-type]
        return limit

    def render(
        self, values: Mapping[str, Json] | None = None, *, release: str | None = None, tests: bool = False
    ) -> list[Rendered]:
        """Return the app's objects as plain dicts.

        Args:
            values: settings with overrides applied; the defaults when None.
            release: a release name other than the app's.
            tests: whether to include the objects of `helm test`.
        """
        scope = Scope(
            full_name(release or self.name, self.name, self.name_max),
            self.namespace,
            self.default_values() if values is None else values,
            release or self.name,
            self.name,
            self.name_max,
        )
        rendered = []
        for item in self.objects:
            if (item.test and not tests) or (item.when is not None and not item.when.value(scope)):
                continue
            # The metadata are resolved first, and with them a spec that the name is a hash of.
            body = {key: scope.shared.get(id(node)) or resolve(node, scope) for key, node in item.body.items()}
            rendered.append(Rendered(item, body))
        return rendered


class Rendered(Struct, frozen=True):
    """An object as it will be written, with the object that it was made from."""

    object: Object
    body: dict[str, Any]

    def __hash__(self) -> int:
        return hash((self.object,))


def collect_settings(objects: Sequence[Object], order: Sequence[str] = ()) -> tuple[Setting, ...]:
    """Return each setting once, grouped by the first key of its path in `order`, then as first used.

    Raises:
        AssertionError: two settings with one path have different defaults.
    """
    by_path: dict[str, Setting] = {}
    seen: dict[int, Setting] = {}
    for item in objects:
        used = [*([item.when] if item.when else []), *find_settings(item.body)]
        for setting in used:
            # A setting with 40,000 entries is used by as many variables: its default is compared once.
            if id(setting) in seen:
                continue
            seen[id(setting)] = setting
            known = by_path.setdefault(setting.path, setting)
            assert known.default == setting.default, f"two defaults for the setting {setting.path}"
    rank = {name: index for index, name in enumerate(order)}
    return tuple(sorted(by_path.values(), key=lambda s: rank.get(s.path.partition(".")[0], len(rank))))


class Roles:
    """The roles of an app's objects.

    Attributes:
        separator: between a role and the number that distinguishes it.
    """

    def __init__(self, separator: str = "-") -> None:
        self.separator = separator
        self._taken = {RESERVED}
        self._numbers: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """Return a role that no other object has, and reserve it: the wanted one, or that with the next free number."""
        role = wanted
        number = self._numbers.get(wanted, 1)
        while role in self._taken:
            number += 1
            role = f"{wanted}{self.separator}{number}"
        self._numbers[wanted] = number
        self._taken.add(role)
        return role
