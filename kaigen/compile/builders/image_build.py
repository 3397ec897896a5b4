"""The Job that builds an image from a Git repository with rootless BuildKit, and the gate that waits for it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from kaigen.compile.app import Note, Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import POD_SECURITY, Frame
from kaigen.compile.builders.job_gate import AwaitedRun, job_gate
from kaigen.compile.builders.jobs import Run, job
from kaigen.compile.builders.pods import container_security, image_fields, image_ref, pull_secrets
from kaigen.compile.builders.sources import short_hash
from kaigen.compile.builders.weights import PERMANENT_EXIT_CODES, SMALL_RESOURCES, downloader_image
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Setting, SpecPath, Tree
from kaigen.compile.problems import Problems
from kaigen.kinds.blocks import Image, Transfer
from kaigen.kinds.build import Build
from kaigen.kinds.pod import PodFields
from kaigen.kubernetes.image_names import parse_image
from kaigen.kubernetes.secret_types import DOCKER_CONFIG_KEY

AT: SpecPath = ("spec", "build")

COMPONENT = "build"
"""Component label of the build's Job."""

GATE = "wait-for-build"
"""Name of the init container that waits for the build."""

PRIVILEGED = "privileged"
"""Pod Security level of the build's pod: that of `baseline` forbids the profile Unconfined."""

FAILED = (14,)
"""Exit code of the gate when the build has failed (source: the downloader's README)."""

_WAVE = 2
_USER = 1000
"""User of the rootless image, which cannot be changed (source: BuildKit's docs/rootless.md)."""

_STATE = "/home/user/.local/share/buildkit"
_FOUND = "/status/found"
_CACHE_TAG = "buildcache"
_SCRIPT = f'[ -e {_FOUND} ] || exec buildctl-daemonless.sh "$@"'
_COMMIT = re.compile("[0-9a-f]{40}")


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
    made = job(
        Run(
            frame,
            role="job-build",
            component=COMPONENT,
            wave=_WAVE,
            pod=_pod(build, reference, context),
            retries=build.retries,
            deadline=build.deadline,
            origin=AT,
            prefix="build.",
            permanent={"find-image": PERMANENT_EXIT_CODES},
            pod_annotations={POD_SECURITY: PRIVILEGED},
            suffix="-build",
        )
    )
    return ImageBuild(reference, Object(made.role, made.body, made.wave, pod_security=PRIVILEGED))


def built_reference(build: Build, context: Context) -> str:
    """Return the reference of a built image."""
    git, builder = build.git, image_ref(_builder(build, context))
    meaning = {
        "git": [git.url, git.commit, git.path or ""],
        "dockerfile": build.dockerfile,
        "target": build.target or "",
        "args": dict(sorted(build.args.items())),
        "provenance": build.provenance or "",
        # The digest is the same in every mirror.
        "builder": parse_image(builder).digest or builder,
    }
    return f"{build.repository}:{short_hash(meaning)}"


def check_build(build: Build | None, image: Image | None, problems: Problems) -> None:
    """Report a build from something that changes, and one whose image nothing runs."""
    if build is None:
        return
    git = build.git
    if not _COMMIT.fullmatch(git.commit):
        problems.error(
            "KG0397",
            f"`{git.commit}` is not a commit: a build of a branch or a tag changes without a review",
            (*AT, "git", "commit"),
            f"set the 40 hex digits that `git ls-remote {git.url} {git.commit}` prints",
        )
    if image is not None:
        problems.error(
            "KG0386",
            "the container has an `image` and a `build` of one",
            AT,
            "keep one of the two",
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


def _builder(build: Build, context: Context) -> Image:
    return build.builder if build.builder is not None else context.images["buildkit"]


def _pod(build: Build, reference: str, context: Context) -> dict[str, Tree]:
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "imagePullSecrets": settings.pull_secrets(
            "build.imagePullSecrets",
            pull_secrets(_builder(build, context), spec=PodFields()),
            "Secrets for pulling the builder's image.",
            origin=(*AT, "builder"),
        ),
        "nodeSelector": settings.string_map(
            "build.nodeSelector",
            build.node_selector,
            "Labels that a node must have to run the build.",
            origin=(*AT, "nodeSelector"),
        ),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "initContainers": [_finder(build, reference, context)],
        "containers": [_container(build, reference, context)],
        "volumes": _volumes(build),
    }


def _finder(build: Build, reference: str, context: Context) -> dict[str, Tree]:
    """Return the init container that asks the registry whether it has the image already."""
    env: list[Tree] = []
    if build.push_secret is not None:
        where: Tree = {"name": _push_secret(build), "key": DOCKER_CONFIG_KEY}
        env.append({"name": "REGISTRY_AUTH", "valueFrom": {"secretKeyRef": where}})
    return {
        "name": "find-image",
        **downloader_image(context, Transfer(), (), "build.wait"),
        "args": [
            "find-image",
            f"--ref={reference}",
            f"--write={_FOUND}",
            *(["--plain-http"] if build.plain_http else []),
        ],
        **({"env": env} if env else {}),
        "resources": dict(SMALL_RESOURCES),
        "securityContext": container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "status", "mountPath": "/status"}],
    }


def _container(build: Build, reference: str, context: Context) -> dict[str, Tree]:
    env: list[Tree] = [{"name": "BUILDKITD_FLAGS", "value": "--oci-worker-no-process-sandbox"}]
    mounts: list[Tree] = [
        {"name": "state", "mountPath": _STATE},
        {"name": "status", "mountPath": "/status", "readOnly": True},
    ]
    if build.push_secret is not None:
        env.append({"name": "DOCKER_CONFIG", "value": "/etc/kaigen-registry"})
        mounts.append({"name": "registry", "mountPath": "/etc/kaigen-registry", "readOnly": True})
    if build.git.token_secret is not None:
        mounts.append({"name": "git", "mountPath": "/etc/kaigen-git", "readOnly": True})
    amounts = {"cpu": build.cpu, "memory": build.memory}
    return {
        "name": "build",
        **image_fields(_builder(build, context), "build.", (*AT, "builder") if build.builder else ()),
        "command": ["sh", "-c", _SCRIPT, "build"],
        "args": _arguments(build, reference),
        "env": env,
        "resources": Setting(
            "build.resources",
            {"requests": amounts, "limits": {"memory": build.memory}},
            "Resources of the builder.",
            settings.RESOURCES,
            origin=AT,
        ),
        # Rootless BuildKit creates a user namespace with newuidmap, a program of root, and mounts in it.
        "securityContext": {
            "allowPrivilegeEscalation": True,
            "readOnlyRootFilesystem": False,
            "seccompProfile": {"type": "Unconfined"},
            "appArmorProfile": {"type": "Unconfined"},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _arguments(build: Build, reference: str) -> Sequence[str]:
    git = build.git
    place = f"{git.url}#{git.commit}" + (f":{git.path}" if git.path else "")
    insecure = ",registry.insecure=true" if build.plain_http else ""
    arguments = [
        "build",
        "--progress=plain",
        "--frontend=dockerfile.v0",
        f"--opt=context={place}",
        f"--opt=filename={build.dockerfile}",
        *([f"--opt=target={build.target}"] if build.target else []),
        *(f"--opt=build-arg:{name}={value}" for name, value in sorted(build.args.items())),
        *([f"--opt=attest:provenance=mode={build.provenance}"] if build.provenance else []),
        *(["--secret=id=GIT_AUTH_TOKEN,src=/etc/kaigen-git/token"] if git.token_secret else []),
        f"--output=type=image,name={reference},push=true{insecure}",
    ]
    if build.cache is not None:
        where = f"type=registry,ref={build.cache}:{_CACHE_TAG}{insecure}"
        arguments += [f"--import-cache={where}", f"--export-cache={where},mode=max"]
    # Kubernetes expands `$(NAME)` in arguments.
    return [argument.replace("$(", "$$(") for argument in arguments]


def _push_secret(build: Build) -> Setting:
    return settings.text(
        "build.pushSecret",
        build.push_secret or "",
        "Secret of type dockerconfigjson with which the image is pushed.",
        origin=(*AT, "pushSecret"),
    )


def _volumes(build: Build) -> list[Tree]:
    volumes: list[Tree] = [
        {
            "name": "state",
            "emptyDir": {
                "sizeLimit": settings.quantity(
                    "build.storage",
                    build.storage,
                    "Largest size of the layers during the build.",
                    origin=(*AT, "storage"),
                )
            },
        },
        {"name": "status", "emptyDir": {}},
    ]
    if build.push_secret is not None:
        items: Tree = [{"key": DOCKER_CONFIG_KEY, "path": "config.json"}]
        volumes.append({"name": "registry", "secret": {"secretName": _push_secret(build), "items": items}})
    token = build.git.token_secret
    if token is not None:
        at = (*AT, "git", "tokenSecret")
        name = settings.text(
            "build.tokenSecret.name",
            token.name,
            "Secret with the token of the Git server.",
            origin=(*at, "name"),
        )
        key = settings.text(
            "build.tokenSecret.key", token.key, "Key of the token in the Secret.", origin=(*at, "key")
        )
        items = [{"key": key, "path": "token"}]
        volumes.append({"name": "git", "secret": {"secretName": name, "items": items}})
    return volumes
