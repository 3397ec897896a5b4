"""The block `publish` of `kaigen.yaml`: where `kaigen publish` goes to when the command line does not say."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kaigen.config.block_settings import PublishSettings
from kaigen.kinds.base import NO_BLANKS, Block

Word = Annotated[str, Field(min_length=1, max_length=512, pattern=NO_BLANKS)]
OciUrl = Annotated[str, Field(pattern=r"^oci://[^\s/]+/[^\s]+$", max_length=512)]


class Publish(Block):
    """Where rendered trees, charts and manifests are published."""

    remote: Word = Field(
        "origin", description="Remote of the repository, by name or as a URL without a password."
    )
    branch: Word | None = Field(
        None,
        description="Deploy branch; `{env}` in it stands for the environment.",
        examples=["deploy", "env/{env}"],
    )
    path: Word | None = Field(
        None,
        description="Folder in the deploy branch, `.` for its top; `{env}` stands for the environment. "
        "Default: the output folder's path in the repository.",
        examples=[".", "clusters/{env}/apps"],
    )
    pull_request: bool = Field(
        False, description="Push to a branch of its own that a pull request can be opened from."
    )
    sign: bool | None = Field(None, description="Sign commits. Default: what git's `commit.gpgSign` says.")
    charts: OciUrl | None = Field(
        None,
        description="OCI repository that charts are pushed below; `{env}` and `{namespace}` are filled in.",
        examples=["oci://ghcr.io/acme/charts"],
    )
    version_suffix: bool = Field(
        False,
        description="Append a digest of its content to each chart's version, as in `0.1.0+4f1c0a9e2d77`.",
    )
    manifests: OciUrl | None = Field(
        None,
        description="OCI repository that manifests are pushed to for Flux; `{env}` is filled in.",
        examples=["oci://ghcr.io/acme/manifests/{env}"],
    )


def publish_settings(block: Publish | None) -> PublishSettings | None:
    """Return the settings of the block; None without it."""
    return PublishSettings(**block.model_dump(by_alias=False)) if block else None
