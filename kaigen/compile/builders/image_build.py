"""The Job that builds an image with rootless BuildKit, and the gate that waits for it."""

from __future__ import annotations

from msgspec import Struct

from kaigen.compile.app import Note, Object
from kaigen.compile.builders.build_pod import AT, FETCHER, FINDER, builder_image, builder_pod
from kaigen.compile.builders.frame import POD_SECURITY, Frame
from kaigen.compile.builders.job_gate import AwaitedRun, job_gate
from kaigen.compile.builders.jobs import Run, job
from kaigen.compile.builders.pods import image_ref
from kaigen.compile.builders.sources import short_hash
from kaigen.compile.builders.weights import PERMANENT_EXIT_CODES
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Tree
from kaigen.compile.problems import Problems
from kaigen.kinds.blocks import Image
from kaigen.kinds.build import Build, GitContext
from kaigen.kubernetes.images import is_image, parse_image

COMPONENT = "build"
"""Component label of the build's Job."""

GATE = "wait-for-build"
"""Name of the init container that waits for the build."""

PRIVILEGED = "privileged"
"""Pod Security level of the build's pod: that of `baseline` forbids the profile Unconfined."""

FAILED = (14,)
"""Exit code of the gate when the build has failed (source: the downloader's README)."""

_WAVE = 2


class ImageBuild(Struct, frozen=True):
    """An image that the app builds.

    Attributes:
        reference: what pods run. The tag is a hash of everything that the image is made from.
        job: the Job that builds it.
    """

    reference: str
    job: Object

    @property
    def run(self) -> AwaitedRun:
        """The Job, for those that wait for it."""
        name = self.job.name
        assert isinstance(name, Expr)
        return AwaitedRun("Job", "batch", name)

    @property
    def note(self) -> Note:
        """What a reader of the app should know."""
        return Note(
            f"builds {self.reference} with rootless BuildKit, in a pod that the namespace must allow: Pod Security "
            f"`{PRIVILEGED}`",
            AT,
        )


def image_build(build: Build | None, frame: Frame, context: Context) -> ImageBuild | None:
    """Return the build of a spec; None where it has none.

    Args:
        build: the spec's block.
        frame: the app.
        context: has the images of the builder and of the downloader.
    """
    if build is None:
        return None
    reference = built_reference(build, context)
    containers = [FINDER] if build.artifact is None else [FINDER, FETCHER]
    made = job(
        Run(
            frame,
            role="job-build",
            component=COMPONENT,
            wave=_WAVE,
            pod=builder_pod(build, reference, context),
            retries=build.retries,
            deadline=build.deadline,
            origin=AT,
            prefix="build.",
            permanent=dict.fromkeys(containers, PERMANENT_EXIT_CODES),
            pod_annotations={POD_SECURITY: PRIVILEGED},
            suffix="-build",
        )
    )
    return ImageBuild(reference, Object(made.role, made.body, made.wave, pod_security=PRIVILEGED))


def built_reference(build: Build, context: Context) -> str:
    """Return the reference of a built image."""
    builder = image_ref(builder_image(build, context))
    meaning = {
        **_context(build),
        "dockerfile": build.dockerfile,
        "target": build.target or "",
        "args": dict(sorted(build.args.items())),
        "provenance": build.provenance or "",
        # The digest is the same in every mirror.
        "builder": parse_image(builder).digest or builder,
    }
    return f"{build.repository}:{short_hash(meaning)}"


def _context(build: Build) -> dict[str, Tree]:
    """Return what the image is made from."""
    if build.git is not None:
        return {"git": [build.git.url, build.git.commit, build.git.path or ""]}
    artifact = build.artifact or ""
    # The digest is the same in every registry.
    return {"artifact": parse_image(artifact).digest or artifact}


def check_build(build: Build | None, image: Image | None, problems: Problems) -> None:
    """Report a build from something that changes, and one whose image nothing runs."""
    if build is None:
        return
    if build.git is not None:
        _check_commit(build.git, problems)
    if build.artifact is not None:
        _check_artifact(build.artifact, problems)
    if build.repository is None:
        problems.error(
            "KG0387",
            "the build has no `repository` to push the image to",
            AT,
            "set `repository`, or `builds.registry` in kaigen.yaml",
        )
    if image is not None:
        problems.error("KG0386", "the container has an `image` and a `build` of one", AT, "keep one of the two")


def _check_commit(git: GitContext, problems: Problems) -> None:
    if not git.is_fixed:
        problems.error(
            "KG0397",
            f"`{git.commit}` is not a commit: a build of a branch or a tag changes without a review",
            (*AT, "git", "commit"),
            "run `kaigen pin` to replace it by its commit, or `kaigen lock` to record the commit",
        )


def _check_artifact(artifact: str, problems: Problems) -> None:
    at = (*AT, "artifact")
    if not is_image(artifact):
        problems.error(
            "KG0395",
            f"`{artifact}` is not the reference of an artifact",
            at,
            "write REGISTRY/REPOSITORY@DIGEST, as `kaigen build push` prints it",
        )
    elif not parse_image(artifact).digest:
        problems.error(
            "KG0397",
            f"`{artifact}` has no digest: a build of a tag changes without a review",
            at,
            "set the reference with the digest that `kaigen build push` prints, or run `kaigen pin`",
        )


def build_gate(build: ImageBuild | None, context: Context) -> list[Tree]:
    """Return the init container that waits for the build; none without a build."""
    if build is None:
        return []
    return [job_gate(build.run, context, name=GATE, transfer=None, prefix="build.wait")]


def gate_failures(build: ImageBuild | None) -> dict[str, tuple[int, ...]]:
    """Return the exit codes of the gate after which a retry cannot succeed."""
    return {GATE: FAILED} if build is not None else {}


def awaited_builds(build: ImageBuild | None) -> list[AwaitedRun]:
    """Return the Job that pods wait for; none without a build."""
    return [build.run] if build is not None else []
