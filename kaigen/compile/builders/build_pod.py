"""The pod that builds an image with rootless BuildKit, from a Git repository or from an artifact."""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.compile.builders import settings
from kaigen.compile.builders.pods import container_security, image_fields, pull_secrets
from kaigen.compile.builders.weights import SMALL_RESOURCES, downloader_image
from kaigen.compile.context import Context
from kaigen.compile.expressions import Setting, Tree
from kaigen.core.json_types import FieldPath
from kaigen.kinds.blocks import Image, Transfer
from kaigen.kinds.build import Build
from kaigen.kinds.pod import PodFields
from kaigen.kubernetes.images import parse_image
from kaigen.kubernetes.secrets import DOCKER_CONFIG_KEY
from kaigen.programs.files import program

AT: FieldPath = ("spec", "build")

FINDER = "find-image"
"""Name of the init container that asks the registry whether it has the image."""

FETCHER = "fetch-context"
"""Name of the init container that fetches an artifact."""

_USER = 1000
"""User of the rootless image, which cannot be changed (source: BuildKit's docs/rootless.md)."""

_STATE = "/home/user/.local/share/buildkit"
_FOUND = "/status/found"
_CONTEXT = "/context"
_FILES = f"{_CONTEXT}/context"
"""Folder with the files of an artifact (source: `kaigen.contexts.artifact`)."""
_CACHE_TAG = "buildcache"
_IDENTITY_DIGITS = 40
_FETCH_RESOURCES: Tree = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}}
"""Resources for an artifact of a folder: 4 connections, and the names of its files."""


def builder_image(build: Build, context: Context) -> Image:
    """Return the image of BuildKit."""
    return build.builder if build.builder is not None else context.config.images["buildkit"]


def builder_pod(build: Build, reference: str, context: Context) -> dict[str, Tree]:
    """Return the pod.

    Args:
        build: the spec's block.
        reference: the image that is pushed.
        context: has the images of the builder and of the downloader.
    """
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "imagePullSecrets": settings.pull_secrets(
            "build.imagePullSecrets",
            pull_secrets(builder_image(build, context), spec=PodFields()),
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
        "initContainers": [
            _finder(build, reference, context),
            *([_fetcher(build, build.artifact, context)] if build.artifact is not None else []),
        ],
        "containers": [_container(build, reference, context)],
        "volumes": _volumes(build),
    }


def _finder(build: Build, reference: str, context: Context) -> dict[str, Tree]:
    """Return the init container that asks the registry whether it has the image already."""
    return {
        "name": FINDER,
        **_downloader(build, context),
        "args": [
            "find-image",
            f"--ref={reference}",
            f"--write={_FOUND}",
            *(["--plain-http"] if build.plain_http else []),
        ],
        **_auth(build),
        "resources": dict(SMALL_RESOURCES),
        "securityContext": container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "status", "mountPath": "/status"}],
    }


def _fetcher(build: Build, artifact: str, context: Context) -> dict[str, Tree]:
    """Return the init container that fetches the artifact, unless the registry has the image already."""
    return {
        "name": FETCHER,
        **_downloader(build, context),
        "args": [
            "fetch",
            "oci",
            f"--ref={artifact}",
            "--build-context",
            f"--unless={_FOUND}",
            f"--dest={_CONTEXT}",
            f"--identity={parse_image(artifact).digest.removeprefix('sha256:')[:_IDENTITY_DIGITS]}",
            *(["--plain-http"] if build.plain_http and _is_same_registry(build, artifact) else []),
        ],
        **_auth(build),
        "resources": _FETCH_RESOURCES,
        "securityContext": container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "status", "mountPath": "/status", "readOnly": True},
            {"name": "context", "mountPath": _CONTEXT},
        ],
    }


def _is_same_registry(build: Build, artifact: str) -> bool:
    return parse_image(artifact).registry == parse_image(build.repository or "").registry


def _downloader(build: Build, context: Context) -> dict[str, Tree]:
    return downloader_image(context, Transfer(), (), "build.wait")


def _auth(build: Build) -> dict[str, Tree]:
    """Return the variable with the credentials for registries; none without a Secret."""
    if build.push_secret is None:
        return {}
    where: Tree = {"name": _push_secret(build), "key": DOCKER_CONFIG_KEY}
    return {"env": [{"name": "REGISTRY_AUTH", "valueFrom": {"secretKeyRef": where}}]}


def _container(build: Build, reference: str, context: Context) -> dict[str, Tree]:
    env: list[Tree] = [{"name": "BUILDKITD_FLAGS", "value": "--oci-worker-no-process-sandbox"}]
    mounts: list[Tree] = [
        {"name": "state", "mountPath": _STATE},
        {"name": "status", "mountPath": "/status", "readOnly": True},
    ]
    if build.push_secret is not None:
        env.append({"name": "DOCKER_CONFIG", "value": "/etc/kaigen-registry"})
        mounts.append({"name": "registry", "mountPath": "/etc/kaigen-registry", "readOnly": True})
    if build.artifact is not None:
        mounts.append({"name": "context", "mountPath": _CONTEXT, "readOnly": True})
    if build.git is not None and build.git.token_secret is not None:
        mounts.append({"name": "git", "mountPath": "/etc/kaigen-git", "readOnly": True})
    amounts = {"cpu": build.cpu, "memory": build.memory}
    return {
        "name": "build",
        **image_fields(builder_image(build, context), "build.", (*AT, "builder") if build.builder else ()),
        "command": ["sh", program("build.sh"), _FOUND],
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
    insecure = ",registry.insecure=true" if build.plain_http else ""
    arguments = [
        "build",
        "--progress=plain",
        "--frontend=dockerfile.v0",
        *_context_arguments(build),
        f"--opt=filename={build.dockerfile}",
        *([f"--opt=target={build.target}"] if build.target else []),
        *(f"--opt=build-arg:{name}={value}" for name, value in sorted(build.args.items())),
        *([f"--opt=attest:provenance=mode={build.provenance}"] if build.provenance else []),
        *_token_arguments(build),
        f"--output=type=image,name={reference},push=true{insecure}",
    ]
    if build.cache is not None:
        where = f"type=registry,ref={build.cache}:{_CACHE_TAG}{insecure}"
        arguments += [f"--import-cache={where}", f"--export-cache={where},mode=max"]
    # Kubernetes expands `$(NAME)` in arguments.
    return [argument.replace("$(", "$$(") for argument in arguments]


def _context_arguments(build: Build) -> list[str]:
    git = build.git
    if git is not None:
        return [f"--opt=context={git.url}#{git.commit}" + (f":{git.path}" if git.path else "")]
    return [f"--local=context={_FILES}", f"--local=dockerfile={_FILES}"]


def _token_arguments(build: Build) -> list[str]:
    if build.git is None or build.git.token_secret is None:
        return []
    return ["--secret=id=GIT_AUTH_TOKEN,src=/etc/kaigen-git/token"]


def _push_secret(build: Build) -> Setting:
    return settings.text(
        "build.pushSecret",
        build.push_secret.name if build.push_secret else "",
        "Secret of type dockerconfigjson with which the image is pushed.",
        origin=(*AT, "pushSecret", "name"),
    )


def _volumes(build: Build) -> list[Tree]:
    size = settings.quantity(
        "build.storage", build.storage, "Largest size of the layers during the build.", origin=(*AT, "storage")
    )
    volumes: list[Tree] = [{"name": "state", "emptyDir": {"sizeLimit": size}}, {"name": "status", "emptyDir": {}}]
    if build.artifact is not None:
        volumes.append({"name": "context", "emptyDir": {"sizeLimit": size}})
    if build.push_secret is not None:
        items: Tree = [{"key": DOCKER_CONFIG_KEY, "path": "config.json"}]
        volumes.append({"name": "registry", "secret": {"secretName": _push_secret(build), "items": items}})
    token = build.git.token_secret if build.git is not None else None
    if token is not None:
        at = (*AT, "git", "tokenSecret")
        name = settings.text(
            "build.tokenSecret.name", token.name, "Secret with the token of the Git server.", origin=(*at, "name")
        )
        key = settings.text("build.tokenSecret.key", token.key, "Key of the token in the Secret.", origin=(*at, "key"))
        items = [{"key": key, "path": "token"}]
        volumes.append({"name": "git", "secret": {"secretName": name, "items": items}})
    return volumes
