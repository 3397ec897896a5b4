"""Further repositories and files that a spec gives to vLLM, in addition to the folder of the weights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kaigen.catalog.engines import Version
from kaigen.catalog.vllm_flags import flags_of, minor_of, nearest_version, version_text
from kaigen.compile.engines.launch import Weights
from kaigen.compile.engines.vllm_flags import Given, given_flags, json_of
from kaigen.compile.expressions import Tree
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath, Json
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kinds.serving import ServedModel
from kaigen.kinds.topology import TopologySpec
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.config.lock_file import Lock
    from kaigen.kinds.blocks import FileSource

with lazy_imports():
    from kaigen.config import locked_files

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_COMMIT = re.compile("[0-9a-f]{40}")
_CONSOLIDATED = "consolidated.safetensors"
"""What `--load-format=mistral` reads: `consolidated*.safetensors` (source: vLLM's `DefaultModelLoader`)."""


def revision_flags(weights: Weights, spec: TopologySpec) -> list[Tree]:
    """Return the flags of the commit of pulled weights, for what is in their repository."""
    hub = weights.pulled
    if hub is None:
        return []
    given = {each.name: each.value for each in given_flags(spec)}
    foreign = {
        "tokenizer-revision": given.get("tokenizer", hub.repo) != hub.repo or "tokenizer-revision" in given,
        "code-revision": "code-revision" in given,
    }
    names = ("revision", "tokenizer-revision", "code-revision")
    return [f"--{name}={hub.revision}" for name in names if not foreign.get(name)]


def check_repositories(
    spec: TopologySpec,
    weights: Weights,
    preset_flags: Mapping[str, Json],
    version: Version | None,
    lock: Lock | None,
    problems: Problems,
) -> None:
    """Report repositories that vLLM cannot read or that may change, and weights in files that it would not find.

    Args:
        spec: the spec.
        weights: the weights of the model.
        preset_flags: flags of the catalogue.
        version: of vLLM; None when it is unknown.
        lock: what the names of the specs stand for; None for nothing.
        problems: collects what is wrong.
    """
    given = {each.name: each for each in given_flags(spec)}
    _check_tokenizer(given, spec, weights, problems)
    _check_config(given, spec, weights, problems)
    _check_draft(given, spec, weights, problems)
    _check_gguf(spec, weights, version, lock, problems)
    _check_mistral(given, spec, weights, preset_flags, lock, problems)


def _check_tokenizer(given: Mapping[str, Given], spec: TopologySpec, weights: Weights, problems: Problems) -> None:
    flag = given.get("tokenizer")
    if flag is None or not _is_reachable(flag.value, flag.path, spec, weights, problems):
        return
    revision = given.get("tokenizer-revision")
    _check_commit(flag, revision.value if revision is not None else None, "set `tokenizer-revision`", problems)


def _check_config(given: Mapping[str, Given], spec: TopologySpec, weights: Weights, problems: Problems) -> None:
    """Report a configuration of another repository, of which vLLM reads the commit of the weights."""
    flag = given.get("hf-config-path")
    if flag is not None and _is_reachable(flag.value, flag.path, spec, weights, problems):
        problems.error(
            "KG0377",
            f"vLLM reads `{flag.value}` at the commit of the weights, which that repository does not have",
            flag.path,
            _MODEL_HINT,
        )


def _check_draft(given: Mapping[str, Given], spec: TopologySpec, weights: Weights, problems: Problems) -> None:
    whole = given.get("speculative-config")
    config = json_of(whole.value) if whole is not None else {}
    model, revision = config.get("model"), config.get("revision")
    path: FieldPath = ()
    if whole is not None:
        path = (*whole.path, "model") if isinstance(whole.value, dict) else whole.path
    single = given.get("speculative-config.model")
    if single is not None:
        model, path = single.value, single.path
        chosen = given.get("speculative-config.revision")
        revision = chosen.value if chosen is not None else revision
    if _is_reachable(model, path, spec, weights, problems):
        _check_commit(Given("model", model, path), revision, "set `revision` next to it", problems)


_MODEL_HINT = "create a Model of it, list its name in `models`, and write `/models/NAME` here"


def _is_reachable(value: object, path: FieldPath, spec: TopologySpec, weights: Weights, problems: Problems) -> bool:
    """Return whether a value is another repository that the engine can pull; report one that it cannot."""
    hub = weights.pulled
    if not isinstance(value, str) or not _REPOSITORY.fullmatch(value) or (hub is not None and value == hub.repo):
        return False
    if hub is None and "HF_HUB_OFFLINE" not in spec.env:
        problems.error(
            "KG0377", f"`{value}` is a repository on the Hub, which the pods do not connect to", path, _MODEL_HINT
        )
        return False
    return True


def _check_commit(flag: Given, revision: object, hint: str, problems: Problems) -> None:
    if not isinstance(revision, str) or not _COMMIT.fullmatch(revision):
        problems.warning(
            "KG0310",
            f"`{flag.value}` has no commit, so its content may change without review",
            flag.path,
            f"{hint} to a commit, 40 hex digits, or use a Model in `models`",
        )


def _check_gguf(
    spec: TopologySpec, weights: Weights, version: Version | None, lock: Lock | None, problems: Problems
) -> None:
    """Report GGUF weights without the file to load, or that the version cannot load."""
    hub, path = weights.pulled, ("spec", "model")
    one = weights.reference.endswith(".gguf") or (hub is not None and hub.gguf is not None)
    if not one:
        if hub is not None and hub.repo.lower().endswith("-gguf"):
            message = f"`{hub.repo}` appears to have GGUF files, of which vLLM loads one"
            hint = "set `gguf` to its quantization, such as `Q4_K_M`"
            problems.warning("KG0379", message, (*path, "huggingFace", "repo"), hint)
        elif weights.stored is not None and _has_only_gguf(weights.stored, lock):
            message = "vLLM loads GGUF weights from one file, and this names a folder"
            hint = "set `model: {name: MODEL, file: FILE.gguf}`"
            problems.error("KG0379", message, path, hint)
        return
    file = spec.model.file if isinstance(spec.model, ServedModel) else None
    if file is not None and weights.stored is not None and not _has(weights.stored, file):
        message = f"the Model does not download `{file}`"
        problems.error("KG0379", message, (*path, "file"), "correct the name, or `include` of the Model")
    table = nearest_version(version)
    if version is not None and minor_of(version) == table and "gguf" not in flags_of(table)["load-format"].registered:
        # An image of one's own may contain the plugin.
        severity = Severity.WARNING if spec.has_own_image else Severity.ERROR
        message = f"vLLM {version_text(table)} loads GGUF only with the plugin `vllm-gguf-plugin`"
        hint = "use an `image` that contains it, weights in another format, or `engine: container` with llama.cpp"
        problems.add(Problem("KG0379", message, path, hint, severity))


def _has_only_gguf(source: FileSource, lock: Lock | None) -> bool:
    weights = [name for name in _names(source, lock) if not name.endswith((".json", ".md", ".txt"))]
    return bool(weights) and all(name.endswith(".gguf") for name in weights)


def _has(source: FileSource, file: str) -> bool:
    """Return whether the globs of a source choose a file; True where it has none."""
    block = source.hugging_face or source.s3 or source.oci
    return block is None or bool(locked_files.selected_files({file: None}, block.include, block.exclude))


def _names(source: FileSource, lock: Lock | None) -> list[str]:
    """Return the names or globs of the files of a source that are downloaded; none where they are unknown."""
    if source.http is not None:
        return [each.path or each.url.partition("?")[0] for each in source.http.files]
    files = locked_files.locked_files(source, lock) if lock is not None else None
    if files is not None:
        return list(files)
    block = source.hugging_face or source.s3 or source.oci
    return list(block.include) if block is not None else []


def _check_mistral(
    given: Mapping[str, Given],
    spec: TopologySpec,
    weights: Weights,
    preset_flags: Mapping[str, Json],
    lock: Lock | None,
    problems: Problems,
) -> None:
    """Report a Model without the files that `--load-format=mistral` reads, which the downloader skips by default."""
    flag = given.get("load-format")
    value = flag.value if flag is not None else preset_flags.get("load-format")
    stored = weights.stored
    block = (stored.hugging_face or stored.s3 or stored.oci) if stored is not None else None
    if value != "mistral" or block is None or stored is None:
        return
    files = locked_files.locked_files(stored, lock) if lock is not None else None
    if files is not None:
        missing = not any(name.rpartition("/")[2].startswith("consolidated") for name in files)
    else:
        missing = not (block.keeps_duplicates or block.include) or not locked_files.selected_files(
            {_CONSOLIDATED: None, "consolidated-00001-of-00002.safetensors": None}, block.include, block.exclude
        )
    if missing:
        problems.error(
            "KG0380",
            f"`load-format: mistral` reads `{_CONSOLIDATED}`, which the Model does not download next to other "
            "safetensors files",
            flag.path if flag is not None else ("spec", "model"),
            "set `duplicates: true` in the source of the Model, or list the file in `include`",
        )
