"""Names of images in a mirror."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kaigen.kubernetes.images import parse_image

if TYPE_CHECKING:
    from kaigen.config.registry import RegistryBlock


def mirror_image(reference: str, mirror: RegistryBlock) -> str:
    """Return where an image is pulled from: by the rule with the longest prefix, else from the mirror.

    Tag and digest stay. An image that is at the target of a rule or of the mirror already stays as it is.
    """
    image = parse_image(reference)
    name = f"{image.registry}/{image.repository}"
    targets = [rule.to for rule in mirror.rules]
    targets += [mirror.mirror.partition("{")[0]] if mirror.mirror else []
    if any(_has_prefix(name, target) for target in targets if target):
        return reference
    fitting = [rule for rule in mirror.rules if _has_prefix(name, rule.from_)]
    if fitting:
        rule = max(fitting, key=lambda rule: len(rule.from_))
        rest = name[len(rule.from_) :].lstrip("/")
        return f"{rule.to.rstrip('/')}/{rest}{image.version}" if rest else f"{rule.to}{image.version}"
    if not mirror.mirror:
        return reference
    return f"{mirror.mirror.replace('{host}', image.registry)}/{image.repository}{image.version}"


def _has_prefix(name: str, prefix: str) -> bool:
    """Return whether a name is below a prefix, which ends at a slash or with a whole part of the name."""
    return name == prefix or name.startswith(prefix if prefix.endswith("/") else f"{prefix}/")
