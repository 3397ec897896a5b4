"""The images of all pods of an app: with the digests of the lock, and from a mirror."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from kaigen.compile.app import App
from kaigen.compile.context import Context
from kaigen.compile.expressions import Setting
from kaigen.compile.image_mirror import mirror_image
from kaigen.compile.pod_edits import edit_items, edit_pods


def with_images(app: App, context: Context) -> App:
    """Return an app whose pods run and mount the images that were locked, from the mirror."""
    if context.config.mirror is None and not context.digests:
        return app

    def named(reference: str) -> str:
        digest = context.digests.get(reference)
        exact = f"{reference}@{digest}" if digest else reference
        if context.config.mirror is None or reference in app.built:
            return exact
        return mirror_image(exact, context.config.mirror)

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
