"""Base classes and field types of specs.

All fields are camelCase in YAML and snake_case in Python; unknown fields are errors; no value is converted
silently (`"5"` is not a number), except that quantities may be plain numbers.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Protocol

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    ModelWrapValidatorHandler,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel, to_snake
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

QUANTITY = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]+)?$"
DURATION = r"^([0-9]+(s|m|h|d))+$"
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
LABEL_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
ABSOLUTE_PATH = r"^/[^:]*$"
RELATIVE_PATH = r"^([^./][^/]*|\.[^./][^/]*|\.\.[^/]+|\.)(/([^./][^/]*|\.[^./][^/]*|\.\.[^/]+|\.?))*$"
"""A relative path without `..`."""
FILE_PATH = r"^[A-Za-z0-9_][A-Za-z0-9_.+@~-]*(/[A-Za-z0-9_][A-Za-z0-9_.+@~-]*)*$"
"""A relative path without hidden parts and without characters that a shell would need to quote."""
ADDRESS = r"^https?://[^\s$@]+(/[^\s$]*)?$"
"""A URL without a user name. Characters that a shell or Kubernetes expands must be percent-encoded."""
SHA256 = r"^[0-9a-f]{64}$"
NO_BLANKS = r"^[^\s]+$"

APP_NAME_MAX = 53
"""Longest name of an app: the limit of Helm release names, and every object's name starts with it."""


def _number_to_text(value: object) -> object:
    if isinstance(value, float):
        # All digits: 1073741824.0 must not become 1.07374e+09.
        return str(int(value)) if value.is_integer() and abs(value) < 1e18 else repr(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Quantity = Annotated[
    str,
    BeforeValidator(_number_to_text),
    Field(pattern=QUANTITY, max_length=40),
    WithJsonSchema({"type": ["string", "number"], "pattern": QUANTITY, "maxLength": 40, "minimum": 0}),
]
"""A Kubernetes quantity: `500m`, `8Gi`, `2`."""

Duration = Annotated[str, Field(pattern=DURATION, max_length=20)]
"""A duration: `90s`, `1h30m`, `2d`."""

AppName = Annotated[str, Field(pattern=DNS_LABEL, min_length=1, max_length=APP_NAME_MAX)]
ObjectName = Annotated[str, Field(pattern=DNS_SUBDOMAIN, min_length=1, max_length=253)]
LabelName = Annotated[str, Field(pattern=DNS_LABEL, min_length=1, max_length=63)]
MountPath = Annotated[str, Field(pattern=ABSOLUTE_PATH, max_length=1024)]
Labels = dict[
    Annotated[str, Field(pattern=LABEL_KEY, max_length=317)],
    Annotated[str, Field(pattern=LABEL_VALUE, max_length=63)],
]
Annotations = dict[Annotated[str, Field(pattern=LABEL_KEY, max_length=317)], str]
Object = dict[str, JsonValue]
"""A Kubernetes fragment that is used unchanged; its fields are checked in the object that contains it."""


class Block(BaseModel):
    """A mapping in a spec: closed, strict, immutable."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        alias_generator=to_camel,
        defer_build=True,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class Choice(Block):
    """A block that requires exactly one of some fields."""

    exactly_one: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="wrap")
    @classmethod
    def _exactly_one(cls, data: Any, handler: ModelWrapValidatorHandler[Any]) -> Any:
        # A wrap validator, so that this problem is reported together with those of the fields.
        if not isinstance(data, dict):
            return handler(data)
        given = [name for name in cls.exactly_one if name in data or to_snake(name) in data]
        if len(given) == 1:
            return handler(data)
        wanted = ", ".join(f"`{name}`" for name in cls.exactly_one)
        if not given:
            words = "needs one of {wanted}" if len(cls.exactly_one) > 1 else "needs {wanted}"
            problem = PydanticCustomError("none_of", words, {"wanted": wanted, "names": cls.exactly_one})
        else:
            both = " and ".join(f"`{name}`" for name in given)
            problem = PydanticCustomError(
                "many_of", "has {both}, which exclude each other", {"both": both, "given": given}
            )
        lines: list[InitErrorDetails] = [InitErrorDetails(type=problem, loc=(), input=data)]
        try:
            handler(data)
        except ValidationError as error:
            lines += [
                InitErrorDetails(
                    type=line["type"], loc=line["loc"], input=line["input"], ctx=line.get("ctx", {})
                )
                if line["type"] not in {"none_of", "many_of"}
                else InitErrorDetails(
                    type=PydanticCustomError(line["type"], line["msg"], line.get("ctx")),
                    loc=line["loc"],
                    input=line["input"],
                )
                for line in error.errors()
            ]
        raise ValidationError.from_exception_data(cls.__name__, lines)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the JSON Schema of the model, with the choice in it."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        if len(cls.exactly_one) == 1:
            schema["required"] = sorted({*schema.get("required", []), *cls.exactly_one})
        else:
            schema["oneOf"] = [{"required": [name]} for name in cls.exactly_one]
        return schema


class KeyRef(Block):
    """A key of a Secret or ConfigMap in the same namespace."""

    name: ObjectName = Field(description="Name of the object.", examples=["hf-token"])
    key: Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)] = Field(
        description="Key in the object.", examples=["token"]
    )


class TokenSecret(Block):
    """The Secret with a token."""

    name: ObjectName = Field(description="Name of the Secret.", examples=["hf-token"])
    key: Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)] = Field(
        "token", description="Key of the token. Default: `token`."
    )


class Metadata(Block):
    """Name, namespace, labels and annotations of the app."""

    name: AppName = Field(
        description=f"Name of the app, and prefix of the names of its objects. At most {APP_NAME_MAX} "
        "characters, as for a Helm release.",
        examples=["qwen"],
    )
    namespace: LabelName | None = Field(
        None, description="Namespace of all objects. Default: the one in `kaigen.yaml`."
    )
    labels: Labels = Field({}, description="Labels for every object.")
    annotations: Annotations = Field(
        {}, description="Annotations for every object. Those that start with `kaigen.dev/` configure kaigen."
    )


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
