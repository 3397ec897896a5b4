"""A mapping of a document as a typed object: reading, the fields that the document sets, copies with changes."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, TypeVar, dataclass_transform

from msgspec import Struct, StructMeta, convert, field
from msgspec.structs import FieldInfo, fields, force_setattr, replace


class _BlockMeta(StructMeta):
    """Makes the fields of every block keyword-only, which a Struct does not inherit."""

    def __new__(mcls, *args: Any, **options: Any) -> Any:
        return super().__new__(mcls, *args, kw_only=True, **options)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Block(Struct, metaclass=_BlockMeta, frozen=True, forbid_unknown_fields=True, rename="camel", dict=True):
    """A mapping in a spec: closed, strict, immutable.

    Besides the types of msgspec, a field may have a type with a method `from_document`, which returns the value for
    plain data or raises ValueError, and an attribute `json_schema`.

    Attributes:
        text_means: the field that a text in place of the block was once written for; empty for none. See
            `kaigen.kinds.spelling`.
        formerly: fields that the block once had, each with the path in the block that has its value now.
    """

    text_means: ClassVar[str] = ""
    formerly: ClassVar[Mapping[str, tuple[str, ...]]] = {}


class Choice(Block):
    """A block that requires exactly one of some fields, named as in a document."""

    exactly_one: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        names = _attributes(type(self))
        if sum(getattr(self, names[name]) is not None for name in self.exactly_one) != 1:
            raise ValueError("needs exactly one of " + ", ".join(f"`{name}`" for name in self.exactly_one))


B = TypeVar("B", bound=Block)


class Later(type):
    """The type of a field whose block is imported when a document has one; see `later`."""

    reference: str

    def block(cls) -> type[Block]:
        """Return the block."""
        module, _, name = cls.reference.partition(":")
        block: type[Block] = getattr(import_module(module), name)
        return block

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.block())

    def from_document(cls, value: object) -> Block:
        """Return plain data as the block.

        Raises:
            msgspec.ValidationError: the data does not match it.
        """
        return convert(value, cls.block(), dec_hook=_decoded)


def later(reference: str) -> Any:
    """Return a type that stands for a block, whose module is imported when a document has one.

    A block is declared with hundreds of types and patterns, which takes longer than reading most documents. So those
    that few documents have are imported like this, after an `else`:

        if TYPE_CHECKING:
            from kaigen.kinds.convert import Convert
        else:
            Convert = later("kaigen.kinds.convert:Convert")

    Args:
        reference: `module:class`.
    """
    return Later(reference.partition(":")[2], (), {"reference": reference})


_SET_FIELDS = "_set_fields"


def read_block(model: type[B], data: object) -> B:
    """Return plain data as a block.

    Raises:
        msgspec.ValidationError: the data does not match the model. The message names only one error;
            `kaigen.kinds.errors` finds them all.
    """
    block = convert(data, model, dec_hook=_decoded)
    _record_set_fields(block, data)
    return block


@cache
def _fields(model: type[Block]) -> tuple[FieldInfo, ...]:
    """Return the fields of a model; msgspec evaluates all its annotations in each call."""
    return fields(model)


def set_fields(block: Block) -> frozenset[str]:
    """Return the names of the fields that a document sets.

    Of a block that was made in Python, they are those with other values than the default.
    """
    recorded: frozenset[str] | None = block.__dict__.get(_SET_FIELDS)
    if recorded is not None:
        return recorded
    return frozenset(
        item.name for item in _fields(type(block)) if item.required or getattr(block, item.name) != default_of(item)
    )


def replace_fields(block: B, **changes: Any) -> B:
    """Return a block with other values of some fields, which count as set."""
    copy = replace(block, **changes)
    force_setattr(copy, _SET_FIELDS, set_fields(block) | changes.keys())
    return copy


def derive_fields(block: B, **changes: Any) -> B:
    """Return a block with other values of some fields, of which only those count as set that the document sets."""
    copy = replace(block, **changes)
    force_setattr(copy, _SET_FIELDS, set_fields(block))
    return copy


def without_fields(block: B, *names: str) -> B:
    """Return a block with the defaults of some fields, which do not count as set."""
    defaults = {item.name: default_of(item) for item in _fields(type(block)) if item.name in names}
    copy = replace(block, **defaults)
    force_setattr(copy, _SET_FIELDS, set_fields(block) - set(names))
    return copy


def document_name(block: Block | type[Block], name: str) -> str:
    """Return the name that a field of a block has in documents."""
    return block.__struct_encode_fields__[block.__struct_fields__.index(name)]


def document_names(model: type[Block]) -> tuple[str, ...]:
    """Return the names that the fields of a block have in documents."""
    return model.__struct_encode_fields__


def default_of(item: FieldInfo) -> Any:
    """Return the default of a field that has one."""
    return item.default_factory() if callable(item.default_factory) else item.default


@cache
def _attributes(model: type[Block]) -> dict[str, str]:
    """Return the names of the fields by their names in documents."""
    return dict(zip(model.__struct_encode_fields__, model.__struct_fields__, strict=True))


def _record_set_fields(value: object, data: object) -> None:
    if isinstance(value, Block) and isinstance(data, dict):
        names = _attributes(type(value))
        force_setattr(value, _SET_FIELDS, frozenset([names[key] for key in data]))
        for key, inner in data.items():
            if isinstance(inner, dict | list):
                _record_set_fields(getattr(value, names[key]), inner)
    elif isinstance(value, dict) and isinstance(data, dict):
        for key, inner in data.items():
            if isinstance(inner, dict | list):
                _record_set_fields(value[key], inner)
    elif isinstance(value, list) and isinstance(data, list):
        for item, inner in zip(value, data, strict=True):
            if isinstance(inner, dict | list):
                _record_set_fields(item, inner)


def _decoded(kind: Any, value: object) -> object:
    """Return a value of a type that msgspec does not know."""
    if not hasattr(kind, "from_document"):
        raise NotImplementedError
    return kind.from_document(value)
