"""The block `publish` of `kaigen.yaml`: defaults of `kaigen publish`."""

from typing import Annotated

from msgspec import Meta

from kaigen.kinds.base import NO_BLANKS, text
from kaigen.kinds.block import Block

Word = Annotated[str, text(NO_BLANKS, min_length=1, max_length=512)]
OciUrl = Annotated[str, text(r"^oci://[^\s/]+/[^\s]+$", max_length=512)]


class Publish(Block):
    """Defaults of `kaigen publish`."""

    remote: Annotated[Word, Meta(description="Git remote, by name or as a URL without a password.")] = "origin"
    branch: Annotated[
        Word | None,
        Meta(description="Deploy branch; `{env}` is replaced by the environment.", examples=["deploy", "env/{env}"]),
    ] = None
    path: Annotated[
        Word | None,
        Meta(
            description="Folder in the deploy branch, or `.` for its root; `{env}` is replaced by the "
            "environment. Default: the path of the output folder.",
            examples=[".", "clusters/{env}/apps"],
        ),
    ] = None
    pull_request: Annotated[bool, Meta(description="Push to a new branch for a pull request.")] = False
    sign: Annotated[bool | None, Meta(description="Sign commits. Default: Git's `commit.gpgSign`.")] = None
    charts: Annotated[
        OciUrl | None,
        Meta(
            description="OCI repository for charts; `{env}` and `{namespace}` are replaced.",
            examples=["oci://ghcr.io/acme/charts"],
        ),
    ] = None
    version_suffix: Annotated[
        bool, Meta(description="Append a digest of the content to each chart version, as in `0.1.0+4f1c0a9e2d77`.")
    ] = False
    manifests: Annotated[
        OciUrl | None,
        Meta(
            description="OCI repository for the manifests that Flux reads; `{env}` is replaced.",
            examples=["oci://ghcr.io/acme/manifests/{env}"],
        ),
    ] = None
