"""Ask registries whether they have the images that a repository uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from msgspec import Struct

from kaigen.diagnostics.errors import SystemFailure
from kaigen.kubernetes.images import images_of, is_image, parse_image
from kaigen.oci.http import Unreachable
from kaigen.oci.reference import Reference
from kaigen.oci.registry import LATEST, LoginRequired, Registry
from kaigen.pipeline.result import Compiled

State = Literal["found", "missing", "login", "unreachable", "invalid"]
_CALLS = 8
_TIMEOUT_S = 10.0
_ATTEMPTS = 2


class Used(Struct, frozen=True):
    """An image of pods.

    Attributes:
        image: as pods name it.
        apps: the apps that use it, `NAMESPACE/NAME`.
    """

    image: str
    apps: tuple[str, ...]


class Answer(Struct, frozen=True):
    """What a registry says about an image.

    Attributes:
        image: the image as pods name it.
        apps: the apps that use it, `NAMESPACE/NAME`.
        state: `login` if the registry wants credentials, also for an image that it does not have; `invalid` for what
            is not the reference of an image.
        digest: digest of the image that the registry has; empty for none.
        detail: the registry's reason; empty for none.
    """

    image: str
    apps: tuple[str, ...]
    state: State
    digest: str = ""
    detail: str = ""


def images_used(apps: Iterable[Compiled]) -> list[Used]:
    """Return the images that pods of apps run or mount, those of `helm test` too, by name.

    Images that the cluster builds itself are not among them.
    """
    found: dict[str, dict[str, None]] = {}
    for item in apps:
        for image in images_of(rendered.body for rendered in item.app.render(item.values, tests=True)):
            if image.partition("@")[0] not in item.app.built:
                found.setdefault(image, {})[f"{item.app.namespace}/{item.app.name}"] = None
    return [Used(image, tuple(names)) for image, names in sorted(found.items())]


def check_images(images: Sequence[Used], *, plain_http: bool = False) -> list[Answer]:
    """Ask the registry of each image for it, several at once.

    Credentials are those of `docker login` on this machine. Nodes have others: an image that is found here may still
    need a pull secret.

    Args:
        images: the images.
        plain_http: connect to remote registries without TLS.
    """
    with ThreadPoolExecutor(_CALLS) as pool:
        return list(pool.map(lambda used: _ask(used, plain_http=plain_http), images))


def _ask(used: Used, *, plain_http: bool) -> Answer:
    if not is_image(used.image):
        return Answer(used.image, used.apps, "invalid", detail="not the reference of an image")
    image = parse_image(used.image)
    reference = Reference(image.registry, image.repository, image.tag or LATEST)
    registry = Registry(reference, plain_http=plain_http, access="pull", attempts=_ATTEMPTS, timeout=_TIMEOUT_S)
    try:
        digest = registry.digest(image.digest or reference.tag)
    except LoginRequired as error:
        return Answer(used.image, used.apps, "login", detail=str(error))
    except Unreachable as error:
        return Answer(used.image, used.apps, "unreachable", detail=str(error))
    except SystemFailure as error:
        return Answer(used.image, used.apps, "missing", detail=str(error))
    if digest is None:
        return Answer(
            used.image, used.apps, "missing", detail=f"{image.registry} has no {image.repository}{image.version}"
        )
    return Answer(used.image, used.apps, "found", digest)
