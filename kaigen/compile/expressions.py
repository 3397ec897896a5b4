"""Expressions: leaves of an object whose values are known only when the app is rendered.

An object is a plain dict in which some leaves are expressions: the release name, a setting, a text joined from both.
An expression can be written in two ways, which always give the same value:

- `value(scope)`: the value, for plain manifests;
- `pipeline()`: the Go template pipeline that gives Helm the same value.

Nothing else in an object differs between plain manifests and a chart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from msgspec import Struct, field

from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.core.json_types import FieldPath, Json

if TYPE_CHECKING:
    Tree: TypeAlias = "bool | int | float | str | Expr | Sequence[Tree] | Mapping[str, Tree] | None"
else:
    Tree = Any  # `help` resolves annotations of records, and this refers to itself
"""An object or a subtree of it: JSON with expressions in it; mappings are dicts, sequences are lists or tuples."""


CHART = "\0"
"""The name of the chart in a pipeline; `kaigen.emit.helm_template.dump_template` replaces it. No YAML contains it."""

NAME_MAX = 53
"""Most characters of a release's name in Helm, and of the full name that the names of its objects begin with."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A key that a Go template can name as a field."""

DIGEST_LENGTH = 8
"""Hex digits of a content hash in a name: 32 bits suffice, since only versions of one app must differ."""


class Scope(Struct, frozen=True):
    """The values that expressions are evaluated with.

    Attributes:
        fullname: beginning of the names of all objects; the app's name in plain manifests.
        namespace: namespace of the app.
        values: the settings as a nested mapping, overrides applied.
        release: name of the Helm release; empty for `fullname`.
        app: name of the app; empty for `fullname`.
        most: most characters of `fullname`.
        shared: resolved mappings that several objects share, by the identity of their source.
    """

    fullname: str
    namespace: str
    values: Mapping[str, Json]
    release: str = ""
    app: str = ""
    most: int = NAME_MAX
    shared: dict[int, dict[str, Json]] = field(default_factory=dict)

    def resolve_shared(self, tree: Mapping[str, Tree]) -> dict[str, Json]:
        """Return a shared mapping, resolved once and the same object each time."""
        known = self.shared.get(id(tree))
        if known is None:
            known = self.shared[id(tree)] = resolve(tree, self)  # type: ignore[assignment]
        return known  # type: ignore[return-value]


class Expr(Struct, frozen=True):
    """A leaf or subtree whose value is known only when the app is rendered.

    Not an abstract base class, since `isinstance` runs for every expression of every object and would be slower.
    """

    omit_empty: ClassVar[bool] = False
    """Leave the field out while the value is empty."""

    def value(self, scope: Scope) -> Json:
        """Return the value in a scope."""
        raise NotImplementedError

    def pipeline(self) -> str:
        """Return the Go template pipeline of the same value, without braces."""
        raise NotImplementedError

    def inline(self) -> str:
        """Return the YAML text of the value in a template, on one line."""
        return f"{{{{ {self.pipeline()} | toJson }}}}"

    def settings(self) -> Iterator[Setting]:
        """Yield every setting that it reads."""
        return iter(())


class Release(Expr, frozen=True):
    """The full name of the release with a fixed suffix: `finetune` or `finetune-output`.

    Attributes:
        suffix: end of the name.
        prefix: beginning of the name, for names of a foreign system.
    """

    suffix: str = ""
    prefix: str = ""

    def value(self, scope: Scope) -> str:
        return self.prefix + scope.fullname + self.suffix

    def pipeline(self) -> str:
        fullname = f'include "{CHART}.fullname" .'
        fixed = self.prefix or self.suffix
        return f'printf "{self.prefix}%s{self.suffix}" ({fullname})' if fixed else fullname

    def inline(self) -> str:
        # Names contain only letters, digits, dots and dashes.
        return f'"{self.prefix}{{{{ include "{CHART}.fullname" . }}}}{self.suffix}"'


class Namespace(Expr, frozen=True):
    """The namespace of the app."""

    def value(self, scope: Scope) -> str:
        return scope.namespace

    def pipeline(self) -> str:
        return ".Release.Namespace"

    def inline(self) -> str:
        return '"{{ .Release.Namespace }}"'


class Setting(Expr, frozen=True):
    """A leaf or subtree that a user may override at deploy time.

    Attributes:
        path: its path in `values.yaml`, dotted.
        default: its value unless overridden.
        doc: one sentence for `values.yaml` and the chart's README.
        schema: JSON Schema of its value.
        optional: the object's field is left out while its value is empty (`""`, 0, false, `[]`, `{}`).
        origin: the spec's field that it came from, for diagnostics; empty when kaigen chose it.
        helper: the chart's helper that applies values of a parent chart to it; empty for none.
        by_profile: whether the profile of the cluster decided the default, or a part of it.
    """

    path: str
    default: Any
    doc: str
    schema: Mapping[str, Any]
    optional: bool = False
    origin: FieldPath = ()
    helper: str = ""
    by_profile: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The path as keys."""
        return tuple(self.path.split("."))

    def value(self, scope: Scope) -> Json:
        return self.within(scope.values)

    def within(self, values: Mapping[str, Json]) -> Json:
        """Return its value among nested values; None when it is missing."""
        here: Any = values
        try:
            for key in self.path.split("."):
                here = here[key]
        except (KeyError, TypeError):
            return None
        return here  # type: ignore[no-any-return]

    def pipeline(self) -> str:
        if not self.helper:
            return f".Values.{self.path}"
        given = f'include "{CHART}.{self.helper}" (list . .Values.{self.path})'
        if isinstance(self.default, list):
            return f"({given} | fromJsonArray)"
        return f"({given} | fromJson)" if isinstance(self.default, dict) else given

    def settings(self) -> Iterator[Setting]:
        yield self

    def __hash__(self) -> int:
        return hash((self.path, self.doc, self.optional, self.origin))


class Item(Expr, frozen=True):
    """One entry of a setting that is a mapping."""

    of: Setting
    key: str

    def value(self, scope: Scope) -> Json:
        mapping = self.of.value(scope)
        return mapping.get(self.key) if isinstance(mapping, dict) else None

    def pipeline(self) -> str:
        if _IDENTIFIER.fullmatch(self.key):
            return f"{self.of.pipeline()}.{self.key}"
        return f"(index {self.of.pipeline()} {json.dumps(self.key)})"

    def settings(self) -> Iterator[Setting]:
        yield self.of


class Text(Expr, frozen=True):
    """A value as text: a string as it is, anything else as JSON.

    Attributes:
        of: the value.
        verbatim: whether to double each `$`, so that Kubernetes does not expand `$(NAME)` in it.
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


class JsonText(Expr, frozen=True):
    """A value as one line of JSON text."""

    of: Expr

    def value(self, scope: Scope) -> str:
        return go_json(self.of.value(scope))

    def pipeline(self) -> str:
        return f"toJson {self.of.pipeline()}"

    def settings(self) -> Iterator[Setting]:
        return self.of.settings()


class Joined(Expr, frozen=True):
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


def shorten_name(text: str, most: int) -> str:
    """Return a name of at most `most` characters: a longer one becomes its beginning and a hash of the whole."""
    if len(text) <= most:
        return text
    return f"{text[: most - DIGEST_LENGTH - 1].rstrip('-.')}-{sha256_hex(text)[:DIGEST_LENGTH]}"


class Shortened(Expr, frozen=True):
    """A name that may be too long; see `shorten_name`.

    Attributes:
        of: the name.
        most: greatest number of characters.
    """

    of: Expr
    most: int

    def value(self, scope: Scope) -> str:
        return shorten_name(str(self.of.value(scope)), self.most)

    def pipeline(self) -> str:
        inner = f"({self.of.pipeline()})"
        begin = f'regexReplaceAll "[-.]+$" ({inner} | trunc {self.most - DIGEST_LENGTH - 1}) ""'
        short = f'printf "%s-%s" ({begin}) ({inner} | sha256sum | trunc {DIGEST_LENGTH})'
        return f"gt (len {inner}) {self.most} | ternary ({short}) {inner}"

    def settings(self) -> Iterator[Setting]:
        return self.of.settings()


_LEAVES = frozenset({str, int, float, bool, type(None)})


def resolve(tree: Tree, scope: Scope) -> Json:
    """Return the tree with every expression replaced by its value; empty optional settings leave their field out."""
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
                if value or not getattr(kind, "omit_empty", False):
                    result[key] = value
        return result
    if kind is list or kind is tuple:
        items: Any = tree
        return [item if type(item) in _LEAVES else resolve(item, scope) for item in items]
    return tree.value(scope) if isinstance(tree, Expr) else tree  # type: ignore[return-value]


def find_settings(tree: Tree) -> list[Setting]:
    """Return every setting in a tree, in order, repeated as often as it is used."""
    settings: list[Setting] = []
    _find((tree,), settings)
    return settings


def _find(nodes: Iterable[Tree], settings: list[Setting]) -> None:
    for node in nodes:
        kind = type(node)
        if kind in _LEAVES:
            continue
        if kind is dict:
            _find(node.values(), settings)  # type: ignore[union-attr]
        elif kind is list or kind is tuple:
            _find(node, settings)  # type: ignore[arg-type]
        elif kind is Setting:
            settings.append(node)  # type: ignore[arg-type]
        elif isinstance(node, Expr):
            settings.extend(node.settings())
