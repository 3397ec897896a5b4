"""The block `publish` of `kaigen.yaml`: defaults of `kaigen publish`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kaigen.config.block_settings import PublishSettings
from kaigen.kinds.base import NO_BLANKS, Block

Word = Annotated[str, Field(min_length=1, max_length=512, pattern=NO_BLANKS)]
OciUrl = Annotated[str, Field(pattern=r"^oci://[^\s/]+/[^\s]+$", max_length=512)]


class Publish(Block):
    """Defaults of `kaigen publish`."""

    remote: Word = Field("origin", description="Git remote, by name or as a URL without a password.")
    branch: Word | None = Field(
        None,
        description="Deploy branch; `{env}` is replaced by the environment.",
        examples=["deploy", "env/{env}"],
    )
    path: Word | None = Field(
        None,
        description="Folder in the deploy branch, or `.` for its root; `{env}` is replaced by the environment. "
        "Default: the path of the output folder.",
        examples=[".", "clusters/{env}/apps"],
    )
    pull_request: bool = Field(False, description="Push to a new branch for a pull request.")
    sign: bool | None = Field(None, description="Sign commits. Default: Git's `commit.gpgSign`.")
    charts: OciUrl | None = Field(
        None,
        description="OCI repository for charts; `{env}` and `{namespace}` are replaced.",
        examples=["oci://ghcr.io/acme/charts"],
    )
    version_suffix: bool = Field(
        False,
        description="Append a digest of the content to each chart version, as in `0.1.0+4f1c0a9e2d77`.",
    )
    manifests: OciUrl | None = Field(
        None,
        description="OCI repository for the manifests that Flux reads; `{env}` is replaced.",
        examples=["oci://ghcr.io/acme/manifests/{env}"],
    )


def publish_settings(block: Publish | None) -> PublishSettings | None:
    """Return the settings of the block; None without it."""
    return PublishSettings(**block.model_dump(by_alias=False)) if block else None
