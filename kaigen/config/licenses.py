"""The block `licenses` of `kaigen.yaml`: the licences of models that may be used."""

from typing import Annotated

from msgspec import Meta, field

from kaigen.config.block_settings import LicensePolicy
from kaigen.kinds.base import NO_BLANKS, text
from kaigen.kinds.block import Block

LicenceName = Annotated[str, text(NO_BLANKS, min_length=1, max_length=100)]


class Licenses(Block):
    """Licences of models by their names on the Hub, or globs; `unknown` for a model that names none."""

    allow: Annotated[
        list[LicenceName],
        Meta(
            description="Licences that may be used. With this list, all others are errors, except those in `ask`.",
            examples=[["apache-2.0", "mit"]],
        ),
    ] = field(default_factory=list)
    deny: Annotated[
        list[LicenceName],
        Meta(description="Licences that are errors, also if `allow` has them.", examples=[["*-nc-*"]]),
    ] = field(default_factory=list)
    ask: Annotated[
        list[LicenceName],
        Meta(description="Licences that are warnings, for a person to decide.", examples=[["llama3*"]]),
    ] = field(default_factory=list)


def license_policy(block: Licenses | None) -> LicensePolicy | None:
    """Return the settings of the block; None without it."""
    return LicensePolicy(tuple(block.allow), tuple(block.deny), tuple(block.ask)) if block else None
