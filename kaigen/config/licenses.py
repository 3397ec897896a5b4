"""The block `licenses` of `kaigen.yaml`: the licences of models that may be used."""

from typing import Annotated

from msgspec import Meta, field

from kaigen.config.block_settings import LicensePolicy
from kaigen.kinds.base import NO_BLANKS, text
from kaigen.kinds.block import Block

LicenceName = Annotated[str, text(NO_BLANKS, min_length=1, max_length=100)]

SourceGlob = Annotated[str, Meta(min_length=1, max_length=4000)]


class Licenses(Block):
    """Licences of models and datasets by name, or globs; `unknown` for files that name none."""

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
    known: Annotated[
        dict[SourceGlob, LicenceName],
        Meta(
            description="Licences of files that name none: by the repository on the Hub, the URI of the bucket, the "
            "URL of the file, or the repository in the registry, or globs of them.",
            examples=[{"s3://acme-models/*": "proprietary"}],
        ),
    ] = field(default_factory=dict)


def license_policy(block: Licenses | None) -> LicensePolicy | None:
    """Return the settings of the block; None without it."""
    if block is None:
        return None
    return LicensePolicy(tuple(block.allow), tuple(block.deny), tuple(block.ask), tuple(sorted(block.known.items())))
