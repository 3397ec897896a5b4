"""Sources of files as the downloader takes them: arguments, variables with credentials, and their identity."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kaigen.compile.builders import settings
from kaigen.compile.builders.bucket_access import key_variables, protocol_of, transfer_server
from kaigen.compile.expressions import Tree
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.core.json_types import FieldPath
from kaigen.kinds.base import FILE_PATH
from kaigen.kinds.blocks import FileSource, HttpFile, HubRepository, HuggingFace, ModelSignature
from kaigen.kinds.model import DatasetSource, FilesOfRun, JobFiles, ModelSource
from kaigen.kinds.sources import S3, Oci, WeightsArtifact, WeightsBucket
from kaigen.kubernetes.images import parse_image
from kaigen.kubernetes.secrets import DOCKER_CONFIG_KEY

if TYPE_CHECKING:
    from kaigen.kinds.job import Input, OutputBucket

IMAGE_FOLDER = "models"
"""Folder of the files in ModelCar images (source: KServe's documentation of model storage in OCI images)."""


JOB_OUTPUT = "/output"
"""Mount path of the output of a Job, in the pod that stores its files."""


def moving_revision(revision: str, *, written: bool) -> str:
    """Return why the files of a repository may change, as a message.

    Args:
        revision: a branch or a tag.
        written: whether the spec names it.
    """
    if written:
        return f"`{revision}` is not a commit, so its content may change without review"
    return f"no revision is written, so the branch `{revision}` is taken, whose content may change without review"


def identity(source: FileSource) -> str:
    """Return the identity of a set of files: 16 hex digits of the source's hash.

    It names the folder of the files, next to those of other revisions. The downloader writes it to the marker, and
    gates wait for it, so that files of another revision are never used in place of these. Transfer settings and tokens
    do not change it.
    """
    hub, http, s3, oci = source.hugging_face, source.http, source.s3, source.oci
    meaning: dict[str, Any] = {}
    if hub:
        meaning["huggingFace"] = {
            "repo": repository_name(hub),
            "revision": hub.revision,
            "include": list(hub.include),
            "exclude": list(hub.exclude),
            **({"duplicates": True} if _asks_for_duplicates(hub) else {}),
        }
    if http:
        meaning["http"] = [[file_path(file), file.sha256] for file in http.files]
    if s3:
        meaning["s3"] = [s3.location, s3.revision, list(s3.include), list(s3.exclude), *_duplicates_meaning(s3)]
    if oci:
        image = parse_image(oci.ref)
        # A tag next to a digest is a comment.
        version = image.digest or image.version
        name = f"{image.registry}/{image.repository}"
        meaning["oci"] = [name, version, _folder(oci), list(oci.include), list(oci.exclude), *_duplicates_meaning(oci)]
    job = job_files(source)
    if job:
        run = job.run if isinstance(job, FilesOfRun) else job.name
        meaning["job"] = [run, job_folder(job), list(job.include), list(job.exclude)]
    if source.signature:
        # Files that were stored without a check are not those that the check has passed.
        meaning["signature"] = signature_arguments(source.signature)
    return short_hash(meaning)


def job_files(source: FileSource) -> JobFiles | None:
    """Return the files of a Job that a source names; None for another source."""
    return source.job if isinstance(source, ModelSource | DatasetSource) else None


def job_folder(job: JobFiles) -> str:
    """Return the folder of the output with the files; empty for its root."""
    folder = (job.path or "").strip("/")
    return "" if folder == "." else folder


def short_hash(meaning: Any) -> str:
    """Return 16 hex digits of the hash of a value."""
    return sha256_hex(go_json(meaning))[:16]


def repository_name(hub: HubRepository) -> str:
    """Return the name of a repository with the folder of its type: `OWNER/NAME`, or `datasets/OWNER/NAME`."""
    return f"{hub.namespace}{hub.repo}"


def _asks_for_duplicates(block: HubRepository | S3 | Oci) -> bool:
    has_weights = isinstance(block, HuggingFace | WeightsBucket | WeightsArtifact)
    return has_weights and block.keeps_duplicates and not block.include


def _duplicates_meaning(block: S3 | Oci) -> list[str]:
    return ["duplicates"] if _asks_for_duplicates(block) else []


def _skip_duplicates(block: S3 | Oci) -> list[Tree]:
    return ["--skip-duplicates"] if not block.keeps_duplicates and not block.include else []


def _folder(oci: Oci) -> str:
    return IMAGE_FOLDER if oci.path is None else oci.path


def file_path(file: HttpFile | Input) -> str:
    """Return the path of a file in its folder; empty when the spec does not decide it."""
    bucket = None if isinstance(file, HttpFile) else file.s3
    last = (urlsplit(file.url or "").path if bucket is None else bucket.place).rpartition("/")[2]
    return file.path or (last if re.fullmatch(FILE_PATH, last) else "")


def source_arguments(source: FileSource, command: Sequence[Tree] | None = None) -> list[Tree]:
    """Return the command of the downloader for a source, and its arguments about it.

    Args:
        source: the source.
        command: the command and the arguments in place of those for the source.
    """
    signature = signature_arguments(source.signature) if source.signature else []
    return [*(_own_arguments(source) if command is None else command), *signature]


def signature_arguments(signature: ModelSignature) -> list[Tree]:
    """Return the arguments of the downloader about a signature."""
    keys = ["".join(key.split("-----")[2].split()) for key in signature.public_keys]
    return [*(f"--signed-by={key}" for key in keys), f"--signature={signature.file}"]


def _own_arguments(source: FileSource) -> list[Tree]:
    if source.hugging_face:
        return _hub_arguments(source.hugging_face)
    if source.s3:
        return _bucket_arguments(source.s3)
    if source.oci:
        return _registry_arguments(source.oci)
    job = job_files(source)
    if job:
        return ["put", f"{JOB_OUTPUT}/{job_folder(job)}".rstrip("/"), *globs(job)]
    return web_arguments(source.http.files if source.http else [])


def globs(block: HubRepository | S3 | Oci | JobFiles | OutputBucket) -> list[Tree]:
    """Return the arguments about the files that are chosen."""
    return [*(f"--include={glob}" for glob in block.include), *(f"--exclude={glob}" for glob in block.exclude)]


def _hub_arguments(hub: HubRepository) -> list[Tree]:
    return [
        "fetch",
        "huggingface",
        f"--repo={repository_name(hub)}",
        f"--revision={hub.revision}",
        *globs(hub),
        *(["--duplicates"] if _asks_for_duplicates(hub) else []),
    ]


def _bucket_arguments(s3: S3) -> list[Tree]:
    endpoint, region = transfer_server(s3)
    return [
        "fetch",
        "s3",
        f"--uri={protocol_of(s3)}://{s3.place}",
        *([f"--endpoint={endpoint}"] if endpoint else []),
        *([f"--region={region}"] if region else []),
        *globs(s3),
        *_skip_duplicates(s3),
        *([f"--locked={s3.revision}"] if s3.revision else []),
    ]


def _registry_arguments(oci: Oci) -> list[Tree]:
    return [
        "fetch",
        "oci",
        f"--ref={oci.ref}",
        f"--path={_folder(oci)}",
        *(["--plain-http"] if oci.plain_http else []),
        *globs(oci),
        *_skip_duplicates(oci),
    ]


def web_arguments(files: Sequence[HttpFile | Input]) -> list[Tree]:
    """Return the command of the downloader for files of web servers, and its arguments about them."""
    arguments: list[Tree] = ["fetch", "http"]
    for number, file in enumerate(files):
        path = file_path(file)
        known = f"--file={path}={file.url}" if file.url else f"--file-from={path}={url_variable(number)}"
        arguments += [known, *([f"--sha256={path}={file.sha256}"] if file.sha256 else [])]
    return arguments


def url_variable(number: int) -> str:
    """Return the variable with the URL of a file."""
    return f"ADDRESS_{number}"


def source_variables(source: FileSource, origin: FieldPath, *, own: bool) -> list[Tree]:
    """Return the variables with the credentials of a source.

    Args:
        source: the source.
        origin: the spec's field of it.
        own: whether they are settings of the app; False where an app has several sources.
    """
    if source.hugging_face and source.hugging_face.token_secret:
        token = source.hugging_face.token_secret
        at = (*origin, "huggingFace", "tokenSecret")
        texts = {
            "name": (token.name, "Secret with the Hugging Face token."),
            "key": (token.key, "Key of the token in the Secret."),
        }
        fields = _settings("download.tokenSecret", texts, at, own=own)
        return [_variable("HF_TOKEN", fields["name"], fields["key"])]
    if source.s3 and source.s3.credentials and source.s3.credentials.secret:
        secret, at = source.s3.credentials.secret, (*origin, "s3", "credentials", "secret")
        keys = key_variables(secret, source.s3.scheme)
        texts = {
            "name": (secret.name, "Secret with the keys of the bucket that files are read from."),
            **{part: (key, f"Key of the {what} in that Secret.") for part, key, what in keys.values()},
        }
        fields = _settings("download.sourceCredentials", texts, at, own=own)
        return [
            _variable(f"SOURCE_{variable}", fields["name"], fields[part]) for variable, (part, _, _) in keys.items()
        ]
    if source.oci and source.oci.pull_secret:
        texts = {"name": (source.oci.pull_secret.name, "Secret of type dockerconfigjson, for the registry.")}
        fields = _settings("download.pullSecret", texts, (*origin, "oci", "pullSecret"), own=own)
        return [_variable("REGISTRY_AUTH", fields["name"], DOCKER_CONFIG_KEY)]
    return []


def _settings(
    prefix: str,
    texts: Mapping[str, tuple[str, str]],
    origin: FieldPath,
    *,
    own: bool,
) -> dict[str, Tree]:
    """Return texts as settings under a prefix, or as they are."""
    if not own:
        return {name: value for name, (value, _) in texts.items()}
    return {
        name: settings.text(f"{prefix}.{name}", value, doc, origin=(*origin, name))
        for name, (value, doc) in texts.items()
    }


def _variable(name: str, secret: Tree, key: Tree) -> Tree:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def source_account(source: FileSource) -> Mapping[str, str]:
    """Return the annotations of the downloader's ServiceAccount with which it may read a source."""
    credentials = source.s3.credentials if source.s3 else None
    account = credentials.service_account if credentials else None
    return account.annotations if account else {}
