"""Check the licences of the models that a spec names."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.catalog.presets import find_preset
from kaigen.compile.context import Context
from kaigen.config.lock_file import namespace_of
from kaigen.config.settings import FILE_NAME
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.kinds.repositories import Path, repositories
from kaigen.kinds.spec import Spec
from kaigen.kinds.topology import Topology

_CODE = "KG0752"


def check_licenses(spec: Spec, context: Context) -> Iterator[Diagnostic]:
    """Yield an error for each model whose licence the policy denies, and a warning where a person must decide."""
    policy = context.licenses
    if policy is None:
        return
    for repo, licence, path in _licences(spec, context):
        if licence is None:
            message = f"the licence of {repo} is not known, and `licenses` in {FILE_NAME} restricts licences"
            yield spec.diagnostic(_CODE, message, path, "run `kaigen lock`")
            continue
        name = licence or "unknown"
        verdict = policy.verdict(name)
        if verdict == "deny":
            message = f"{repo} has the licence `{name}`, which `licenses` in {FILE_NAME} does not allow"
            yield spec.diagnostic(_CODE, message, path, "use another model, or change the policy")
        elif verdict == "ask":
            message = f"{repo} has the licence `{name}`, which a person must accept"
            hint = f"add it to `licenses.allow` in {FILE_NAME} and remove it from `ask` once it is accepted"
            yield spec.diagnostic(_CODE, message, path, hint, warning=True)


def _licences(spec: Spec, context: Context) -> Iterator[tuple[str, str | None, Path]]:
    """Yield the models of a spec, each with its licence, None if it is unknown, and the field that names it."""
    block = spec.block
    for path, hub in repositories(block):
        repo = f"{namespace_of(hub)}{hub.repo}"
        yield repo, _licence(repo, hub.revision, hub.endpoint, context), (*path, "repo")
    if isinstance(block, Topology) and block.spec.model is None and block.spec.preset:
        preset = find_preset(block.spec.preset)
        if preset is not None:
            found = _licence(preset.repo, preset.revision or "main", None, context)
            yield preset.repo, found, ("spec", "preset")


def _licence(repo: str, revision: str, endpoint: str | None, context: Context) -> str | None:
    model = context.lock.find(repo, revision, endpoint) if context.lock is not None else None
    if model is not None:
        return model.licence
    preset = find_preset(repo)
    return preset.licence if preset is not None else None
