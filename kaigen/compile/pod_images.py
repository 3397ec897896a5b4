"""The images of all pods of an app: with the digests of the lock, and from a mirror."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kaigen.compile.app import App
from kaigen.compile.context import Context
from kaigen.compile.expressions import Setting
from kaigen.compile.pod_edits import edit_items, edit_pods
from kaigen.kubernetes.images import parse_image

if TYPE_CHECKING:
    from kaigen.config.registry import RegistryBlock


def with_images(app: App, context: Context) -> App:
    """Return an app whose pods run and mount the images that were locked, from the mirror."""
    if context.config.mirror is None and not context.digests:
        return app

    def named(reference: str) -> str:
        return pod_image(reference, context, built=reference in app.built)

    def moved(tree: Any) -> Any:
        if isinstance(tree, Setting) and isinstance(tree.default, str) and tree.default:
            return replace(tree, default=named(tree.default))
        return named(tree) if isinstance(tree, str) and tree else tree

    def container(body: Mapping[str, Any]) -> dict[str, Any]:
        return {key: moved(value) if key == "image" else value for key, value in body.items()}

    def volume(body: Mapping[str, Any]) -> dict[str, Any]:
        image = body.get("image")
        if not isinstance(image, dict) or "reference" not in image:
            return dict(body)
        return {**body, "image": {**image, "reference": moved(image["reference"])}}

    def pod(spec: Mapping[str, Any]) -> dict[str, Any]:
        edits = {"initContainers": container, "containers": container, "volumes": volume}
        return {key: edit_items(value, edits[key]) if key in edits else value for key, value in spec.items()}

    return edit_pods(app, pod)


def pod_image(reference: str, context: Context, *, built: bool = False) -> str:
    """Return the name by which pods pull an image: with the digest of the lock, from the mirror.

    Args:
        reference: the image as it is written, or as `images` of the settings has it.
        context: the settings and the lock.
        built: a Job of the app pushes it, so that no mirror has it.
    """
    digest = context.digests.get(reference)
    exact = f"{reference}@{digest}" if digest else reference
    mirror = context.config.mirror
    return exact if mirror is None or built else mirror_image(exact, mirror)


def mirror_image(reference: str, mirror: RegistryBlock) -> str:
    """Return where an image is pulled from: by the rule with the longest prefix, else from the mirror.

    Tag and digest stay. An image that is at the target of a rule or of the mirror already stays as it is, and so does
    one in another place of the mirror's registry, unless a rule moves it.
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
    if not mirror.mirror or image.registry == mirror.mirror.partition("/")[0]:
        return reference
    return f"{mirror.mirror.replace('{host}', image.registry)}/{image.repository}{image.version}"


def _has_prefix(name: str, prefix: str) -> bool:
    """Return whether a name is below a prefix, which ends at a slash or with a whole part of the name."""
    return name == prefix or name.startswith(prefix if prefix.endswith("/") else f"{prefix}/")
