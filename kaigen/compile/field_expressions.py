"""Expressions made for one field of an object: labels, a Job's hashed name, arguments, topology spread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar

from msgspec import Struct, field

from kaigen.compile.expressions import CHART, DIGEST_LENGTH, Expr, Scope, Setting, Tree, find_settings, resolve
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.compile.name_expressions import full_name
from kaigen.compile.setting_expressions import Merged
from kaigen.core.json_types import Json
from kaigen.kinds.base import matches
from kaigen.kubernetes.metadata_keys import RESERVED_LABELS

MUTABLE_JOB_FIELDS = ("activeDeadlineSeconds", "backoffLimit", "parallelism", "suspend", "ttlSecondsAfterFinished")
"""Mutable fields of a Job's spec; a change to them does not start a new run."""


class HashedName(Expr, frozen=True):
    """The full name of the release with a hash of an immutable spec, which is the same in every release.

    Attributes:
        spec: the Job's spec.
        helper: the chart's named template that returns the hash.
        suffix: what precedes the hash.
    """

    spec: Mapping[str, Tree]
    helper: str
    suffix: str = ""

    def value(self, scope: Scope) -> str:
        spec = scope.resolve_shared(self.spec)
        if scope.app not in ("", scope.release):
            own = full_name(scope.app, scope.app, scope.most)
            spec = resolve(self.spec, Scope(own, scope.namespace, scope.values, scope.app))  # type: ignore[assignment]
        return f"{scope.fullname}{self.suffix}-{spec_digest(spec)}"

    def pipeline(self) -> str:
        return f'printf "%s{self.suffix}-%s" (include "{CHART}.fullname" .) (include "{self.helper}" .)'

    def inline(self) -> str:
        return f'"{{{{ include "{CHART}.fullname" . }}}}{self.suffix}-{{{{ include "{self.helper}" . }}}}"'

    def __hash__(self) -> int:
        return hash((self.helper,))


class ContentName(Expr, frozen=True):
    """The release's full name with a suffix and a hash of the object's content: running pods must not see it change.

    Attributes:
        suffix: what follows the full name.
        content: the content, as text.
    """

    suffix: str
    content: Expr

    def value(self, scope: Scope) -> str:
        return f"{scope.fullname}{self.suffix}-{sha256_hex(str(self.content.value(scope)))[:DIGEST_LENGTH]}"

    def pipeline(self) -> str:
        digest = f"{self.content.pipeline()} | sha256sum | trunc {DIGEST_LENGTH}"
        return f'printf "%s{self.suffix}-%s" (include "{CHART}.fullname" .) ({digest})'

    def settings(self) -> Iterator[Setting]:
        return self.content.settings()


class Entries(Expr, frozen=True):
    """The entries of a map: those of a setting, then fixed ones, which override them.

    The field is left out while the map is empty.

    Attributes:
        fixed: the fixed entries.
        more: the setting, or two.
        ordered: whether the entries are sorted.
    """

    omit_empty: ClassVar[bool] = True

    fixed: Mapping[str, Tree]
    more: Setting | Merged
    ordered: bool = False

    def value(self, scope: Scope) -> Json:
        given = self.more.value(scope)
        fixed = resolve(self.fixed, scope)
        assert isinstance(fixed, dict)
        if not given:
            return fixed
        if not isinstance(given, dict):
            return given
        merged = {**given, **fixed}
        return dict(sorted(merged.items())) if self.ordered else merged

    def pipeline(self) -> str:
        return without_keys(self.more.pipeline(), self.fixed)

    def settings(self) -> Iterator[Setting]:
        yield from self.more.settings()
        yield from find_settings(self.fixed)

    def __hash__(self) -> int:
        return hash((self.more,))


class Items(Expr, frozen=True):
    """The items of a list: those of a setting, fixed ones, then those of another setting.

    The field is left out while the list is empty.

    Attributes:
        before: setting of the first items; None for none.
        fixed: the fixed items.
        after: setting of the last items; None for none.
        keys: fields by which the API server identifies an item, so no two items have the same; empty for any.
    """

    omit_empty: ClassVar[bool] = True

    before: Setting | None
    fixed: tuple[Tree, ...]
    after: Setting | None
    keys: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.before or self.fixed or self.after)

    def value(self, scope: Scope) -> list[Json]:
        found: list[Json] = []
        for part in (self.before, self.fixed, self.after):
            items = resolve(part, scope)
            found += items if isinstance(items, list) else []
        return found

    def pipeline(self) -> str:
        """Return the pipeline of the items of the settings."""
        given = [each.pipeline() for each in (self.before, self.after) if each is not None]
        return given[0] if len(given) == 1 else f"concat {' '.join(given)}"

    def taken(self) -> list[str]:
        """Return the keys of the fixed items, in the form of `item_key`."""
        return [item_key(item, self.keys) for item in self.fixed if isinstance(item, Mapping)] if self.keys else []

    def fixed_item(self, index: int) -> Tree:
        """Return the fixed item at a place in the list, with the defaults of the settings; None for another one."""
        place = index - (len(self.before.default) if self.before is not None else 0)
        return self.fixed[place] if 0 <= place < len(self.fixed) else None

    def settings(self) -> Iterator[Setting]:
        if self.before is not None:
            yield self.before
        yield from find_settings(self.fixed)
        if self.after is not None:
            yield self.after

    def __hash__(self) -> int:
        return hash((self.before, self.after))


def item_key(item: Mapping[str, object], keys: Sequence[str]) -> str:
    """Return the text that identifies an item of a list."""
    return " ".join(str(item.get(key, "")) for key in keys)


def without_keys(pipeline: str, keys: Iterable[str]) -> str:
    """Return the pipeline of a map without some keys: no key may appear twice in a template's output."""
    omitted = " ".join(go_json(key) for key in keys)
    return f"omit {pipeline} {omitted}" if omitted else pipeline


def spec_digest(spec: Mapping[str, Json]) -> str:
    """Return the hash at the end of a Job's name: of all fields that are immutable.

    The chart computes the same from the rendered template: `omit … | toJson | sha256sum | trunc 8`.
    """
    fixed = {key: value for key, value in spec.items() if key not in MUTABLE_JOB_FIELDS}
    return sha256_hex(go_json(fixed))[:DIGEST_LENGTH]


@lru_cache
def _is_reserved(label: str) -> bool:
    return matches(RESERVED_LABELS, label)


class Labels(Expr, frozen=True):
    """The labels of an object: those of the app, then its own, then those of a setting that are not among them.

    Attributes:
        common: labels that kaigen sets on all objects or pods of the app.
        own: labels of this object alone.
        helper: the chart's helper with the common labels.
        more: setting with further labels.
        shared: whether the helper has those of `more` as well.
    """

    common: Mapping[str, Tree]
    own: Mapping[str, Tree] = field(default_factory=dict)
    helper: str = "labels"
    more: Setting | None = None
    shared: bool = False

    def value(self, scope: Scope) -> dict[str, Json]:
        own = resolve(self.own, scope)
        assert isinstance(own, dict)
        labels = {**scope.resolve_shared(self.common), **own}
        more = self.more.value(scope) if self.more is not None else None
        return {**more, **labels} if isinstance(more, dict) else labels

    def pipeline(self) -> str:
        common = f'include "{self.helper}" .'
        taken = " ".join(go_json(key) for key in self.own if key in self.common or self._may_be_given(key))
        # No key may appear twice: the object's own label overrides the user's.
        return f"omit ({common} | fromYaml) {taken} | toYaml" if taken else common

    def _may_be_given(self, key: str) -> bool:
        """Return whether the helper may have a label of that key from the setting."""
        return self.shared and not _is_reserved(key)

    def further(self) -> str:
        """Return the pipeline of the setting's labels; empty without a setting, or if the helper has them."""
        if self.more is None or self.shared:
            return ""
        return without_keys(self.more.pipeline(), (*self.common, *self.own))

    def settings(self) -> Iterator[Setting]:
        yield from find_settings(self.own)
        if self.more is not None:
            yield self.more

    def __hash__(self) -> int:
        return hash((self.helper,))


class Spread(Expr, frozen=True):
    """Topology spread constraints; those without a selector get the app's.

    Kubernetes would apply them to no pods. The field is left out when there are no constraints.

    Attributes:
        of: the constraints, as in a pod.
        selector: labels of the app's pods.
    """

    omit_empty: ClassVar[bool] = True
    keys: ClassVar[tuple[str, ...]] = ("topologyKey", "whenUnsatisfiable")

    of: Setting
    selector: Labels

    def value(self, scope: Scope) -> Json:
        constraints = self.of.value(scope)
        if not isinstance(constraints, list):
            return constraints
        default: dict[str, Json] = {"matchLabels": self.selector.value(scope)}
        return [
            {**item, "labelSelector": default} if isinstance(item, dict) and item.get("labelSelector") is None else item
            for item in constraints
        ]

    def pipeline(self) -> str:
        """Return the pipeline of one constraint, where `.` is the user's constraint and `$` the chart's scope."""
        default = f'dict "matchLabels" (include "{self.selector.helper}" $ | fromYaml)'
        selector = f'kindIs "invalid" .labelSelector | ternary ({default}) .labelSelector'
        return f'set (omit . "labelSelector") "labelSelector" ({selector})'

    def settings(self) -> Iterator[Setting]:
        yield self.of


def _flag_value(value: Json) -> str:
    return value if isinstance(value, str) else go_json(value)


class ListFlags(Struct, frozen=True):
    """Names of flags that take several values in another way than as further arguments.

    Attributes:
        json: as one JSON list.
        repeated: once for each value.
        pairs: whether the value of each flag, also true and false, is the next argument.
    """

    json: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    pairs: bool = False


def flags(given: Json, lists: ListFlags = ListFlags()) -> list[Json]:  # noqa: B008 - it is immutable
    """Return a list of arguments unchanged, or the arguments of a map of flags, sorted by name.

    True becomes the flag alone and false its `--no-` form. A list becomes the flag, then its items as further
    arguments, except for `lists`. Everything else becomes one argument `--name=value`, as JSON unless it is a string.
    A name with a dot sets a field of a JSON value, so true and false are values too.
    """
    if not isinstance(given, dict):
        return list(given) if isinstance(given, list) else []
    arguments: list[Json] = []
    for name, value in sorted(given.items()):
        if lists.pairs:
            arguments += [f"--{name}", _flag_value(value)]
        elif isinstance(value, bool) and "." not in name:
            arguments.append(f"--{name}" if value else f"--no-{name}")
        elif isinstance(value, list) and name in lists.repeated:
            arguments += [f"--{name}={_flag_value(item)}" for item in value]
        elif isinstance(value, list) and name not in lists.json:
            arguments += [f"--{name}", *map(_flag_value, value)]
        else:
            arguments.append(f"--{name}={_flag_value(value)}")
    return arguments


def _template_list(names: Sequence[str]) -> str:
    quoted = " ".join(f'"{name}"' for name in names)
    return f"(list {quoted})"


class Arguments(Expr, frozen=True):
    """The arguments of a container: kaigen's, then those of a setting.

    Attributes:
        fixed: the arguments that kaigen sets.
        more: setting of further arguments, a list or a map of flags; see `flags`.
        lists: how flags take several values.
    """

    fixed: Sequence[Tree]
    more: Setting
    lists: ListFlags = ListFlags()

    def value(self, scope: Scope) -> list[Json]:
        own = resolve(self.fixed, scope)
        assert isinstance(own, list)
        return [*own, *flags(self.more.value(scope), self.lists)]

    def lines(self) -> list[str]:
        """Return the template's lines that add the setting's arguments to a sequence, not indented."""
        name = self.more.pipeline()
        if not isinstance(self.more.default, dict):
            return [f"{{{{- range {name} }}}}", "- {{ toJson . }}", "{{- end }}"]
        if self.lists.pairs:
            return [
                f"{{{{- range $name, $value := {name} }}}}",
                '- {{ printf "--%s" $name | toJson }}',
                '- {{ kindIs "string" $value | ternary $value (toJson $value) | toJson }}',
                "{{- end }}",
            ]
        return [
            f"{{{{- range $name, $value := {name} }}}}",
            '{{- if and (kindIs "bool" $value) (not (contains "." $name)) }}',
            '- {{ printf "--%s%s" (ternary "" "no-" $value) $name | toJson }}',
            *self._repeated_lines(),
            f"{{{{- else if {self._is_plain_list()} }}}}",
            '- {{ printf "--%s" $name | toJson }}',
            "{{- range $value }}",
            '- {{ kindIs "string" . | ternary . (toJson .) | toJson }}',
            "{{- end }}",
            "{{- else }}",
            '- {{ printf "--%s=%s" $name (kindIs "string" $value | ternary $value (toJson $value)) | toJson }}',
            "{{- end }}",
            "{{- end }}",
        ]

    def _repeated_lines(self) -> list[str]:
        if not self.lists.repeated:
            return []
        return [
            f'{{{{- else if and (kindIs "slice" $value) (has $name {_template_list(self.lists.repeated)}) }}}}',
            "{{- range $value }}",
            '- {{ printf "--%s=%s" $name (kindIs "string" . | ternary . (toJson .)) | toJson }}',
            "{{- end }}",
        ]

    def _is_plain_list(self) -> str:
        is_list = 'kindIs "slice" $value'
        return f"and ({is_list}) (not (has $name {_template_list(self.lists.json)}))" if self.lists.json else is_list

    def settings(self) -> Iterator[Setting]:
        yield from find_settings(self.fixed)
        yield self.more

    def __hash__(self) -> int:
        return hash((self.more,))
