"""Images of containers, and images that a build writes."""

from __future__ import annotations

from tests.tenancy.objects import container, deployment, pod, pod_with_volume
from tests.tenancy.tenants import Body


def _build(where: str) -> Body:
    """Return a Pod that builds an image with a cache in a repository."""
    options = [f"--{way}-cache=type=registry,ref={where}:buildcache" for way in ("import", "export")]
    output = "--output=type=image,name=example.com/a:1,push=true"
    return pod(containers=[container(args=["build", output, *options])])


DENIED: dict[str, tuple[Body, str]] = {
    "image": (pod(containers=[container(image="docker.io/x/y:1")]), "the image `docker.io/x/y:1`"),
    "image of a Deployment": (deployment(containers=[container(image="x:1")]), "the image `x:1`"),
    "image of an init container": (pod(initContainers=[container(name="i", image="x:1")]), "the image `x:1`"),
    "image as a volume": (pod_with_volume(image={"reference": "x:1"}), "the image `x:1`"),
    "image of another team's cache": (
        _build("registry.corp/team-b/cache"),
        "the image `registry.corp/team-b/cache:buildcache`",
    ),
    "image in quotes": (
        pod(containers=[container(args=['--export-cache=type=registry,"ref=x/y"'])]),
        'the image `x/y"`',
    ),
    "output of a build": (
        pod(containers=[container(args=["--output=type=image,name=x/y:1,push=true"])]),
        "the image `x/y:1`",
    ),
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    "build": _build("example.com/cache"),
}
"""Objects that the tenant may have."""
