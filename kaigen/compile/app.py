"""What the compiler makes: an app of objects, and the expressions that stand in them.

An object is a plain dict in which some leaves are *expressions*: the release name, a setting, a text joined
from both. An expression has two faces, and the whole promise "one app, two forms" rests on them:

- `value(scope)`: what it is, for plain manifests;
- `pipeline()`: the Go template pipeline that gives Helm the same value.

Nothing else in an object differs between the two forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.diagnostics.diagnostic import Mark

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Tree: TypeAlias = "bool | int | float | str | Expr | Sequence[Tree] | Mapping[str, Tree] | None"
"""An object or a part of it: JSON with expressions in it; its mappings are dicts, its sequences lists or tuples."""

SpecPath = tuple[str | int, ...]

Place = Callable[[SpecPath], Mark | None]
"""Tells where a part of an object was written; None where kaigen made it."""

DIGEST_LENGTH = 8
"""Hex digits of a content hash in a name: 32 bits, compared only within one app's history."""

MUTABLE_JOB_FIELDS = (
    "activeDeadlineSeconds",
    "backoffLimit",
    "parallelism",
    "suspend",
    "ttlSecondsAfterFinished",
)
"""Fields of a Job's spec that the API server lets change in place; they do not make a new run."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What expressions are evaluated against.

    Attributes:
        release: the Helm release's name; the app's own name in plain manifests.
        namespace: where the app goes.
        values: the settings as a nested mapping, overrides applied.
        shared: mappings that stand in several places, resolved already; by identity.
    """

    release: str
    namespace: str
    values: Mapping[str, Json]
    shared: dict[int, dict[str, Json]] = field(default_factory=dict)

    def resolve_shared(self, tree: Mapping[str, Tree]) -> dict[str, Json]:
        """A mapping that others use too: resolved once, and the same object each time."""
        known = self.shared.get(id(tree))
        if known is None:
            known = self.shared[id(tree)] = resolve(tree, self)  # type: ignore[assignment]
        return known  # type: ignore[return-value]


class Expr:
    """A leaf or subtree whose value is known only when the app is rendered.

    Not an abstract base class: `isinstance` is asked of every expression of every object, and would take longer.
    """

    __slots__ = ()

    def value(self, scope: Scope) -> Json:
        """What it is in this scope."""
        raise NotImplementedError

    def pipeline(self) -> str:
        """Go template pipeline, without braces, of the same value."""
        raise NotImplementedError

    def inline(self) -> str:
        """YAML text of the value in a template, on one line."""
        return f"{{{{ {self.pipeline()} | toJson }}}}"

    def settings(self) -> Iterator[Setting]:
        """Every setting that it reads."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Release(Expr):
    """The release's name with a fixed ending: `finetune` or `finetune-output`."""

    suffix: str = ""

    def value(self, scope: Scope) -> str:
        return scope.release + self.suffix

    def pipeline(self) -> str:
        return f'printf "%s{self.suffix}" .Release.Name' if self.suffix else ".Release.Name"

    def inline(self) -> str:
        # Helm allows only letters, digits, dots and dashes in a release name.
        return f'"{{{{ .Release.Name }}}}{self.suffix}"'


@dataclass(frozen=True, slots=True)
class Namespace(Expr):
    """The namespace that the app goes to."""

    def value(self, scope: Scope) -> str:
        return scope.namespace

    def pipeline(self) -> str:
        return ".Release.Namespace"

    def inline(self) -> str:
        return '"{{ .Release.Namespace }}"'


@dataclass(frozen=True, slots=True)
class Setting(Expr):
    """A leaf or subtree that a user may override at deploy time.

    Attributes:
        path: where it stands in `values.yaml`, dotted.
        default: its value unless overridden.
        doc: one sentence for `values.yaml` and the chart's README.
        schema: JSON Schema of its value.
        optional: the field that holds it is left out while its value is empty (`""`, 0, false, `[]`, `{}`).
        origin: the spec's field it came from, for diagnostics; empty when kaigen chose it.
    """

    path: str
    default: Any = field(hash=False)
    doc: str
    schema: Mapping[str, Any] = field(hash=False)
    optional: bool = False
    origin: SpecPath = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The path, split."""
        return tuple(self.path.split("."))

    def value(self, scope: Scope) -> Json:
        return self.within(scope.values)

    def within(self, values: Mapping[str, Json]) -> Json:
        """Its value among nested values; None when it is not there."""
        here: Any = values
        try:
            for key in self.path.split("."):
                here = here[key]
        except (KeyError, TypeError):
            return None
        return here  # type: ignore[no-any-return]

    def pipeline(self) -> str:
        return f".Values.{self.path}"

    def settings(self) -> Iterator[Setting]:
        yield self


@dataclass(frozen=True, slots=True)
class Item(Expr):
    """One entry of a setting that holds a mapping; the key must be an identifier."""

    of: Setting
    key: str

    def value(self, scope: Scope) -> Json:
        mapping = self.of.value(scope)
        return mapping.get(self.key) if isinstance(mapping, dict) else None

    def pipeline(self) -> str:
        return f"{self.of.pipeline()}.{self.key}"

    def settings(self) -> Iterator[Setting]:
        yield self.of


@dataclass(frozen=True, slots=True)
class Text(Expr):
    """A value as text: a string as it is, anything else as JSON.

    Attributes:
        of: the value.
        verbatim: Kubernetes shall not replace `$(NAME)` in it: each `$` is doubled, as it wants it.
    """

    of: Expr
    verbatim: bool = False

    def value(self, scope: Scope) -> str:
        value = self.of.value(scope)
        text = value if isinstance(value, str) else go_json(value)
        return text.replace("$", "$$") if self.verbatim else text

    def pipeline(self) -> str:
        inner = self.of.pipeline()
        text = f'kindIs "string" {inner} | ternary {inner} (toJson {inner})'
        return f'{text} | replace "$" "$$"' if self.verbatim else text

    def settings(self) -> Iterator[Setting]:
        return self.of.settings()


@dataclass(frozen=True, slots=True)
class JsonText(Expr):
    """A value as one line of JSON text."""

    of: Expr

    def value(self, scope: Scope) -> str:
        return go_json(self.of.value(scope))

    def pipeline(self) -> str:
        return f"toJson {self.of.pipeline()}"

    def settings(self) -> Iterator[Setting]:
        return self.of.settings()


@dataclass(frozen=True, slots=True)
class Joined(Expr):
    """Fixed text and expressions, joined: `["--dest=", setting]`."""

    parts: tuple[str | Expr, ...]

    def value(self, scope: Scope) -> str:
        return "".join(part if isinstance(part, str) else str(part.value(scope)) for part in self.parts)

    def pipeline(self) -> str:
        template = "".join(part.replace("%", "%%") if isinstance(part, str) else "%v" for part in self.parts)
        arguments = " ".join(f"({part.pipeline()})" for part in self.parts if isinstance(part, Expr))
        return f"printf {go_json(template)} {arguments}"

    def settings(self) -> Iterator[Setting]:
        for part in self.parts:
            if isinstance(part, Expr):
                yield from part.settings()


def shortened(text: str, most: int) -> str:
    """A name of `most` characters at most: its beginning and a hash of all of it when it is longer."""
    if len(text) <= most:
        return text
    return f"{text[: most - DIGEST_LENGTH - 1].rstrip('-.')}-{sha256_hex(text)[:DIGEST_LENGTH]}"


@dataclass(frozen=True, slots=True)
class Shortened(Expr):
    """A name that may become too long; see `shortened`.

    Attributes:
        of: the name.
        most: how many characters it may have.
    """

    of: Expr
    most: int

    def value(self, scope: Scope) -> str:
        return shortened(str(self.of.value(scope)), self.most)

    def pipeline(self) -> str:
        inner = f"({self.of.pipeline()})"
        begin = f'regexReplaceAll "[-.]+$" ({inner} | trunc {self.most - DIGEST_LENGTH - 1}) ""'
        short = f'printf "%s-%s" ({begin}) ({inner} | sha256sum | trunc {DIGEST_LENGTH})'
        return f"gt (len {inner}) {self.most} | ternary ({short}) {inner}"

    def settings(self) -> Iterator[Setting]:
        return self.of.settings()


@dataclass(frozen=True, slots=True)
class HashedName(Expr):
    """The release's name with a hash of a spec that the API server lets no one change in place.

    Attributes:
        spec: the Job's spec.
        helper: the named template that gives the hash in a chart.
    """

    spec: Mapping[str, Tree] = field(hash=False)
    helper: str

    def value(self, scope: Scope) -> str:
        return f"{scope.release}-{spec_digest(scope.resolve_shared(self.spec))}"

    def pipeline(self) -> str:
        return f'printf "%s-%s" .Release.Name (include "{self.helper}" .)'

    def inline(self) -> str:
        return f'"{{{{ .Release.Name }}}}-{{{{ include "{self.helper}" . }}}}"'


@dataclass(frozen=True, slots=True)
class Labels(Expr):
    """The labels of an object: the app's common ones, then some of its own."""

    common: Mapping[str, Tree] = field(hash=False)
    own: Mapping[str, Tree] = field(default_factory=dict, hash=False)
    helper: str = "labels"

    def value(self, scope: Scope) -> dict[str, Json]:
        own = resolve(self.own, scope)
        assert isinstance(own, dict)
        return {**scope.resolve_shared(self.common), **own}

    def pipeline(self) -> str:
        common = f'include "{self.helper}" .'
        taken = " ".join(go_json(key) for key in self.own if key in self.common)
        # No key may be there twice: a label of the user's gives way to the object's own.
        return f"omit ({common} | fromYaml) {taken} | toYaml" if taken else common

    def settings(self) -> Iterator[Setting]:
        yield from find_settings(self.own)


@dataclass(frozen=True, slots=True)
class Spread(Expr):
    """Topology spread constraints; those that name no pods mean the app's own.

    Kubernetes would let them mean none, and so spread nothing. Left out when there are no constraints.

    Attributes:
        of: the constraints, as in a pod.
        selector: the labels that tell the app's pods.
    """

    of: Setting
    selector: Labels

    def value(self, scope: Scope) -> Json:
        constraints = self.of.value(scope)
        if not isinstance(constraints, list):
            return constraints
        default: dict[str, Json] = {"matchLabels": self.selector.value(scope)}
        return [
            {**item, "labelSelector": default}
            if isinstance(item, dict) and item.get("labelSelector") is None
            else item
            for item in constraints
        ]

    def pipeline(self) -> str:
        """The pipeline of one constraint, where `.` is what was given for it and `$` the chart's scope."""
        default = f'dict "matchLabels" (include "{self.selector.helper}" $ | fromYaml)'
        selector = f'kindIs "invalid" .labelSelector | ternary ({default}) .labelSelector'
        return f'set (omit . "labelSelector") "labelSelector" ({selector})'

    def settings(self) -> Iterator[Setting]:
        yield self.of


def _flag_value(value: Json) -> str:
    return value if isinstance(value, str) else go_json(value)


def flags(given: Json) -> list[Json]:
    """Arguments from a list, which is taken as it is, or from a map of flags, sorted by name.

    True gives the flag alone and false its `--no-` form; a list gives the flag and its entries as further arguments;
    everything else one argument `--name=value`, where what is no text is JSON. A name with a dot in it is a part of
    such JSON, so that its true and false are values too.
    """
    if not isinstance(given, dict):
        return list(given) if isinstance(given, list) else []
    found: list[Json] = []
    for name, value in sorted(given.items()):
        if isinstance(value, bool) and "." not in name:
            found.append(f"--{name}" if value else f"--no-{name}")
        elif isinstance(value, list):
            found += [f"--{name}", *map(_flag_value, value)]
        else:
            found.append(f"--{name}={_flag_value(value)}")
    return found


@dataclass(frozen=True, slots=True)
class Arguments(Expr):
    """The arguments of a container: kaigen's own, then those of a setting.

    Attributes:
        fixed: kaigen's own.
        more: a list of arguments, or a map of flags; see `flags`.
    """

    fixed: Sequence[Tree] = field(hash=False)
    more: Setting

    def value(self, scope: Scope) -> list[Json]:
        own = resolve(self.fixed, scope)
        assert isinstance(own, list)
        return [*own, *flags(self.more.value(scope))]

    def lines(self) -> list[str]:
        """The template's lines that give the setting's arguments as entries of a sequence, not indented."""
        name = self.more.pipeline()
        if not isinstance(self.more.default, dict):
            return [f"{{{{- range {name} }}}}", "- {{ toJson . }}", "{{- end }}"]
        return [
            f"{{{{- range $name, $value := {name} }}}}",
            '{{- if and (kindIs "bool" $value) (not (contains "." $name)) }}',
            '- {{ printf "--%s%s" (ternary "" "no-" $value) $name | toJson }}',
            '{{- else if kindIs "slice" $value }}',
            '- {{ printf "--%s" $name | toJson }}',
            "{{- range $value }}",
            '- {{ kindIs "string" . | ternary . (toJson .) | toJson }}',
            "{{- end }}",
            "{{- else }}",
            '- {{ printf "--%s=%s" $name (kindIs "string" $value | ternary $value (toJson $value)) | toJson }}',
            "{{- end }}",
            "{{- end }}",
        ]

    def settings(self) -> Iterator[Setting]:
        yield from find_settings(self.fixed)
        yield self.more


@dataclass(frozen=True, slots=True)
class Object:
    """One Kubernetes object of an app, with expressions in it.

    Attributes:
        role: file name without its ending, unique in the app and stable: `job-run`, `pvc-output`.
        body: the object; key order is the order in which it is written.
        wave: 0 config, 1 acquisition, 2 conversion, 3 workloads, 4 routes; a claim that of its first pod.
        when: the object exists only while this setting is true.
        test: part of `helm test`; in the chart only.
        verbatim: its file's text, which must stay as it is, byte for byte; such an object is in no chart.
        ending: of its file's name.
        place: where its parts were written, when a user's template or patch did.
    """

    role: str
    body: Mapping[str, Tree] = field(hash=False)
    wave: int = 0
    when: Setting | None = None
    test: bool = False
    verbatim: str = ""
    ending: str = "yaml"
    place: Place | None = field(default=None, compare=False)

    @property
    def kind(self) -> str:
        """The object's kind."""
        return str(self.body["kind"])

    @property
    def hashed(self) -> HashedName | None:
        """The object's name when it ends in a hash of its spec."""
        name = self.body["metadata"]["name"]  # type: ignore[index, call-overload]
        return name if isinstance(name, HashedName) else None


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader of the app should know; shown by `render -v`, NOTES.txt and the chart's README."""

    text: str
    path: SpecPath = ()


@dataclass(frozen=True, slots=True)
class App:
    """What one spec becomes: written, reviewed, synced and deleted together.

    Attributes:
        name: of the app, and of its Helm release in plain manifests.
        namespace: where it goes.
        kind: the kind or dialect kind that the spec was written in, as in `Model` or `AI Operator Job`.
        source: the spec's file, relative to the repository; empty for specs that were not read from one.
        objects: in the order of their waves.
        settings: every setting that the objects use, in the order of `values.yaml`.
        pod_security: the level its pods must satisfy.
        summary: what the app is, one sentence.
        version: of the chart (SemVer).
        app_version: commit of the model when it is known.
        notes: for readers.
        labels: common labels of every object.
        selector_labels: those by which its pods are found.
        elsewhere: kind and name of objects that it refers to and that are there without it.
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
    app_version: str = ""
    notes: tuple[Note, ...] = ()
    labels: Mapping[str, Tree] = field(default_factory=dict)
    selector_labels: Mapping[str, Tree] = field(default_factory=dict)
    elsewhere: tuple[tuple[str, str], ...] = ()

    def default_values(self) -> dict[str, Json]:
        """The settings' defaults as the nested mapping that `values.yaml` holds."""
        values: dict[str, Any] = {}
        for setting in self.settings:
            here = values
            *parents, last = setting.keys
            for key in parents:
                here = here.setdefault(key, {})
            here[last] = setting.default
        return values

    def render(
        self,
        values: Mapping[str, Json] | None = None,
        *,
        release: str | None = None,
        tests: bool = False,
    ) -> list[Rendered]:
        """The app's objects as plain dicts.

        Args:
            values: settings with overrides applied; the defaults when None.
            release: a release name other than the app's.
            tests: those of `helm test`, too.
        """
        scope = Scope(
            release or self.name, self.namespace, self.default_values() if values is None else values
        )
        rendered = []
        for item in self.objects:
            if (item.test and not tests) or (item.when is not None and not item.when.value(scope)):
                continue
            # The metadata come first, so a spec that the name was hashed from is there already.
            body = {
                key: scope.shared.get(id(node)) or resolve(node, scope) for key, node in item.body.items()
            }
            rendered.append(Rendered(item, body))
        return rendered


@dataclass(frozen=True, slots=True)
class Rendered:
    """An object as it will be written, beside where it came from."""

    object: Object
    body: dict[str, Any] = field(hash=False)


_LEAVES = frozenset({str, int, float, bool, type(None)})
# What walks trees below decides by exact type, leaves first, and looks at a node's children before it calls itself:
# it runs for every node of every object.


def resolve(tree: Tree, scope: Scope) -> Json:
    """The tree with every expression replaced by its value; empty optional settings leave their field out."""
    kind = type(tree)
    if kind is dict:
        result: dict[str, Json] = {}
        node: Any
        for key, node in tree.items():  # type: ignore[union-attr]
            kind = type(node)
            if kind in _LEAVES:
                result[key] = node
            elif kind is Setting:
                value = node.value(scope)
                if value or not node.optional:
                    result[key] = value
            else:
                value = resolve(node, scope)
                if value or kind is not Spread:
                    result[key] = value
        return result
    if kind is list or kind is tuple:
        items: Any = tree
        return [item if type(item) in _LEAVES else resolve(item, scope) for item in items]
    return tree.value(scope) if isinstance(tree, Expr) else tree  # type: ignore[return-value]


def spec_digest(spec: Mapping[str, Json]) -> str:
    """The hash that a Job's name ends in: of all that the API server would not let change in place.

    The chart computes the same from the rendered template: `omit … | toJson | sha256sum | trunc 8`.
    """
    fixed = {key: value for key, value in spec.items() if key not in MUTABLE_JOB_FIELDS}
    return sha256_hex(go_json(fixed))[:DIGEST_LENGTH]


def find_settings(tree: Tree) -> list[Setting]:
    """Every setting in a tree, in order, repeated as often as it is used."""
    found: list[Setting] = []
    _find((tree,), found)
    return found


def _find(nodes: Iterable[Tree], found: list[Setting]) -> None:
    for node in nodes:
        kind = type(node)
        if kind in _LEAVES:
            continue
        if kind is dict:
            _find(node.values(), found)  # type: ignore[union-attr]
        elif kind is list or kind is tuple:
            _find(node, found)  # type: ignore[arg-type]
        elif kind is Setting:
            found.append(node)  # type: ignore[arg-type]
        elif isinstance(node, Expr):
            found.extend(node.settings())


def collect_settings(objects: Sequence[Object], order: Sequence[str] = ()) -> tuple[Setting, ...]:
    """Each setting once, grouped by the first part of its path in `order`, then as first used.

    Raises:
        AssertionError: when two objects mean different things by one path.
    """
    found: dict[str, Setting] = {}
    for item in objects:
        used = [*([item.when] if item.when else []), *find_settings(item.body)]
        for setting in used:
            known = found.setdefault(setting.path, setting)
            assert known.default == setting.default, f"two defaults for the setting {setting.path}"
    rank = {name: index for index, name in enumerate(order)}
    return tuple(sorted(found.values(), key=lambda s: rank.get(s.path.partition(".")[0], len(rank))))
