"""The block `build`: an image that a Job of the app builds from a Git repository or an artifact, and pushes."""

import re
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.kinds.base import (
    ENV_NAME,
    NO_BLANKS,
    RELATIVE_PATH,
    Duration,
    Labels,
    ObjectRef,
    Quantity,
    TokenSecret,
    text,
)
from kaigen.kinds.block import Block, Choice
from kaigen.kinds.blocks import Image
from kaigen.kinds.promotable import IMAGE, REVISION

GIT_URL = r"^https?://[^\s$@#?]+\.git$"
"""A repository by HTTP. BuildKit reads other URLs as a file to download (source: its function ParseGitRef)."""

REPOSITORY = r"^[A-Za-z0-9.-]+(:[0-9]+)?/[a-z0-9]+([._/-]+[a-z0-9]+)*$"
"""A repository of a registry, without tag and digest."""


COMMIT = re.compile("[0-9a-f]{40}")
"""Name of a commit, in full."""


class GitContext(Block):
    """A commit of a Git repository."""

    url: Annotated[
        str,
        text(
            GIT_URL,
            max_length=1024,
            description="URL of the repository, which ends in `.git`.",
            examples=["https://github.com/acme/train.git"],
        ),
    ]
    commit: Annotated[
        str,
        REVISION,
        text(
            r"^[A-Za-z0-9][A-Za-z0-9._/-]*$",
            max_length=200,
            description="Commit, 40 hex digits; or a branch or a tag that `kaigen.lock` has the commit of.",
            examples=["7ae557604adf67be50417f59c2c2f167def9a775"],
        ),
    ]
    path: Annotated[
        Annotated[str, text(RELATIVE_PATH, max_length=1024)] | None,
        Meta(description="Folder of the repository with the files. Default: its root.", examples=["images/train"]),
    ] = None
    token_secret: Annotated[
        TokenSecret | None,
        Meta(description="Secret with a token that may read the repository. Only the builder reads it."),
    ] = None

    @property
    def is_fixed(self) -> bool:
        """Whether it names a commit, and no branch or tag."""
        return COMMIT.fullmatch(self.commit) is not None


class Build(Choice):
    """An image that is built from a Dockerfile once and pushed to a registry."""

    exactly_one: ClassVar[tuple[str, ...]] = ("git", "artifact")

    git: Annotated[GitContext | None, Meta(description="A commit of a Git repository, to build from.")] = None
    artifact: Annotated[
        Annotated[str, IMAGE, text(NO_BLANKS, min_length=1, max_length=512)] | None,
        Meta(
            description="A folder to build from, as an OCI artifact with a digest: `kaigen build push` pushes it and "
            "prints the reference.",
            examples=["registry.example.com/acme/train@sha256:…"],
        ),
    ] = None
    repository: Annotated[
        Annotated[str, text(REPOSITORY, max_length=300)] | None,
        Meta(
            description="Where the image is pushed, without a tag: kaigen sets a tag that is a hash of what is built. "
            "Default: the name of the spec in `builds.registry` of kaigen.yaml.",
            examples=["registry.example.com/acme/train"],
        ),
    ] = None
    push_secret: Annotated[
        ObjectRef | None,
        Meta(
            description="Secret of type dockerconfigjson that may push to `repository` and `cache`, and pull "
            "`artifact` and private base images. Only the builder reads it. For pods that pull the image, set "
            "`imagePullSecrets`."
        ),
    ] = None
    plain_http: Annotated[
        bool, Meta(description="Use HTTP instead of HTTPS for the registry of `repository`, inside the cluster.")
    ] = False
    dockerfile: Annotated[
        str, text(RELATIVE_PATH, max_length=1024, description="Path of the Dockerfile in the folder.")
    ] = "Dockerfile"
    target: Annotated[
        Annotated[str, text(r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=128)] | None,
        Meta(description="Stage of the Dockerfile to build. Default: the last one."),
    ] = None
    args: Annotated[
        dict[Annotated[str, text(ENV_NAME, max_length=128)], str],
        Meta(
            description="Values of the Dockerfile's `ARG` instructions. They are part of the image: no secrets.",
            examples=[{"TORCH": "2.13.0"}],
        ),
    ] = field(default_factory=dict)
    cache: Annotated[
        Annotated[str, text(REPOSITORY, max_length=300)] | None,
        Meta(
            description="Repository for the layers of all stages, with the tag `buildcache`, which later builds reuse. "
            "Default: every build starts from nothing.",
            examples=["registry.example.com/acme/train-cache"],
        ),
    ] = None
    provenance: Annotated[
        Literal["min", "max"] | None,
        Meta(
            description="Attach SLSA provenance to the image: `max` includes the Dockerfile and the values of `args`. "
            "Default: none."
        ),
    ] = None
    builder: Annotated[
        Image | None, Meta(description="Image of rootless BuildKit. Default: that of `images.buildkit` in kaigen.yaml.")
    ] = None
    cpu: Annotated[Quantity, Meta(description="CPU of the builder.")] = "1"
    memory: Annotated[Quantity, Meta(description="Memory of the builder, requested and its limit.")] = "4Gi"
    storage: Annotated[
        Quantity, Meta(description="Largest size of the layers on the disk of the node during the build.")
    ] = "20Gi"
    node_selector: Annotated[
        Labels,
        Meta(
            description="Labels that a node must have to run the build. The image has the architecture of that node.",
            examples=[{"kubernetes.io/arch": "amd64"}],
        ),
    ] = field(default_factory=dict)
    retries: Annotated[int, Meta(ge=0, le=100, description="Number of retries of a failed build.")] = 1
    deadline: Annotated[Duration, Meta(description="Time limit of the build, including retries.")] = "1h"
