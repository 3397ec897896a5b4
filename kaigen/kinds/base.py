"""Base classes and field types of specs.

All fields are camelCase in YAML and snake_case in Python; unknown fields are errors; no value is converted
silently (`"5"` is not a number), except that quantities may be plain numbers.
"""

import re
from abc import ABC
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

from msgspec import Meta, field

from kaigen.kinds.block import Block
from kaigen.kubernetes.quantities import canonical

QUANTITY = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]+)?$"
SIZE = f"^auto$|{QUANTITY}"
DURATION = r"^([0-9]+(s|m|h|d))+$"
LIFETIME = r"^(never|([0-9]+(s|m|h|d))+)$"
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
LABEL_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
REPOSITORY = r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$"
PARAM_NAME = r"^[A-Za-z_][A-Za-z0-9_.-]*$"
ABSOLUTE_PATH = r"^/[^:]*$"
FLAG = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
ABSOLUTE_FILE = r"^(/[^:/]+)+$"
_STEP = r"([^./\x00-\x1f][^/\x00-\x1f]*|\.[^./\x00-\x1f][^/\x00-\x1f]*|\.\.[^/\x00-\x1f]+|\.)"
RELATIVE_PATH = rf"^{_STEP}(/({_STEP}|))*$"
"""A relative path without `..` and control characters."""
FILE_PATH = r"^[A-Za-z0-9_][A-Za-z0-9_.+@~-]*(/[A-Za-z0-9_][A-Za-z0-9_.+@~-]*)*$"
"""A relative path without hidden parts and without characters that a shell would need to quote."""
_PORT = "(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})"
_HOST = r"([^\s$@/?#:\[\]]+|\[[0-9A-Fa-f:.]+(%[^\s$@/\[\]]+)?\])"
ADDRESS = rf"^https?://{_HOST}(:{_PORT})?([?#][^\s$@]*)?(/[^\s$]*)?$"
"""A URL without a user name. Characters that a shell or Kubernetes expands must be percent-encoded."""
SHA256 = r"^[0-9a-f]{64}$"
NO_BLANKS = r"^[^\s]+$"

APP_NAME_MAX = 53
"""Longest name of an app: the limit of Helm release names, and every object's name starts with it."""


def text(pattern: str, **options: Any) -> Meta:
    """Return the constraint of a text that must match a pattern.

    Args:
        pattern: regular expression. A `$` at its end matches only the end of the text, as in JSON Schema.
        options: other arguments of `Meta`.
    """
    return Meta(pattern=_exact(pattern), **options)


def listable_text(pattern: str, **options: Any) -> Meta:
    """Return the constraint of a text whose field may also be a list or a map.

    msgspec crashes when a union of a text and a list or map has a pattern. The block must therefore call
    `check_text` in its `__post_init__`.

    Args:
        pattern: as for `text`.
        options: other arguments of `Meta`.
    """
    return Meta(extra_json_schema={"pattern": pattern}, **options)


def check_text(pattern: str, value: object) -> None:
    """Check a text of a `listable_text`; other values are ignored.

    Raises:
        ValueError: it does not match the pattern.
    """
    if isinstance(value, str) and not matches(pattern, value):
        raise ValueError(f"{value!r} does not match {pattern}")


def matches(pattern: str, value: str) -> bool:
    """Return whether a text matches the pattern of its field."""
    return re.search(_exact(pattern), value) is not None


def _exact(pattern: str) -> str:
    """Return a pattern whose last `$` does not match before a newline at the end of a text."""
    return f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern


QUANTITY_MAX = 40
SMALLEST_BARE = 2**20
"""The smallest number of bytes that needs no unit."""

AUTO = "auto"
"""A size that kaigen computes."""

if TYPE_CHECKING:
    Quantity = str
    QuantityOrAuto = str
else:

    class Quantity(ABC):  # noqa: B024 - `str` is registered as its subclass
        """A Kubernetes quantity: `500m`, `8Gi`, `2`. Its values are strings; a number becomes one."""

        json_schema: ClassVar = {
            "type": ["string", "number"],
            "pattern": QUANTITY,
            "maxLength": QUANTITY_MAX,
            "minimum": 0,
        }

        @staticmethod
        def from_document(value: object) -> str:
            """Return the quantity of a text or a number, in the form in which Kubernetes stores it."""
            if isinstance(value, float):
                # All digits: 1073741824.0 must not become 1.07374e+09.
                value = str(int(value)) if value.is_integer() and abs(value) < 1e18 else repr(value)
            elif isinstance(value, int) and not isinstance(value, bool):
                value = str(value)
            if not (isinstance(value, str) and len(value) <= QUANTITY_MAX and matches(QUANTITY, value)):
                raise ValueError(f"{value!r} is not a quantity")
            # A small number without a unit is doubtful, and stays as it is until it is checked.
            return value if value.isdecimal() and int(value) < SMALLEST_BARE else canonical(value)

    class QuantityOrAuto(ABC):  # noqa: B024 - `str` is registered as its subclass
        """A Kubernetes quantity, or `auto`."""

        json_schema: ClassVar = {**Quantity.json_schema, "pattern": SIZE}

        @staticmethod
        def from_document(value: object) -> str:
            """Return the quantity of a text or a number, or `auto`."""
            return AUTO if value == AUTO else Quantity.from_document(value)

    Quantity.register(str)
    QuantityOrAuto.register(str)

Duration = Annotated[str, text(DURATION, max_length=20)]
"""A duration: `90s`, `1h30m`, `2d`."""

Port = Annotated[int, Meta(ge=1, le=65535)]
AppName = Annotated[str, text(DNS_LABEL, min_length=1, max_length=APP_NAME_MAX)]
ObjectName = Annotated[str, text(DNS_SUBDOMAIN, min_length=1, max_length=253)]
LabelName = Annotated[str, text(DNS_LABEL, min_length=1, max_length=63)]
MountPath = Annotated[str, text(ABSOLUTE_PATH, max_length=1024)]
LabelKey = Annotated[str, text(LABEL_KEY, max_length=317)]
Labels = dict[LabelKey, Annotated[str, text(LABEL_VALUE, max_length=63)]]
Annotations = dict[LabelKey, str]


class KeyRef(Block):
    """A key of a Secret or ConfigMap in the same namespace."""

    name: Annotated[ObjectName, Meta(description="Name of the object.", examples=["hf-token"])]
    key: Annotated[
        str, text(r"^[-._a-zA-Z0-9]+$", max_length=253, description="Key in the object.", examples=["token"])
    ]


class ObjectRef(Block):
    """A Secret or ConfigMap in the same namespace."""

    text_means: ClassVar[str] = "name"

    name: Annotated[ObjectName, Meta(description="Name of the object.", examples=["registry-login"])]


class TokenSecret(Block):
    """The Secret with a token."""

    name: Annotated[ObjectName, Meta(description="Name of the Secret.", examples=["hf-token"])]
    key: Annotated[
        str, text(r"^[-._a-zA-Z0-9]+$", max_length=253, description="Key of the token. Default: `token`.")
    ] = "token"


class Metadata(Block):
    """Name, namespace, labels and annotations of the app."""

    name: Annotated[
        AppName,
        Meta(
            description=f"Name of the app, and prefix of the names of its objects. At most {APP_NAME_MAX} "
            "characters, as for a Helm release.",
            examples=["qwen"],
        ),
    ]
    namespace: Annotated[
        LabelName | None, Meta(description="Namespace of all objects. Default: the one in `kaigen.yaml`.")
    ] = None
    environments: Annotated[
        Annotated[list[AppName], Meta(min_length=1)] | None,
        Meta(
            description="Environments of `kaigen.yaml` that have the app. Default: all.",
            examples=[["dev"], ["dev", "staging"]],
        ),
    ] = None
    labels: Annotated[Labels, Meta(description="Labels for every object and pod.")] = field(default_factory=dict)
    annotations: Annotated[
        Annotations,
        Meta(description="Annotations for every object and pod. Those that start with `kaigen.dev/` configure kaigen."),
    ] = field(default_factory=dict)


class AppBlock(Protocol):
    """A spec of a kind that kaigen compiles."""

    @property
    def api_version(self) -> str:
        """Version of the kind."""

    @property
    def kind(self) -> str:
        """The kind."""

    @property
    def metadata(self) -> Metadata:
        """Name, namespace, labels and annotations of the app."""

    @property
    def spec(self) -> Any:
        """The kind's own fields."""
