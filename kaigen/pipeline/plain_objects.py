"""Kubernetes objects among the specs that pass through unchanged: one app for each file."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kaigen.check.atoms import as_written
from kaigen.check.codes import CHANGED_BY_BUILD
from kaigen.check.controller_versions import version_findings
from kaigen.check.custom_rules import default_findings
from kaigen.check.folder_build import folder_build_findings
from kaigen.check.grants import grant_findings
from kaigen.check.policy import check_names
from kaigen.check.schema_check import check_object
from kaigen.compile.passthrough import app_name, passthrough_app, plain_namespace
from kaigen.config.tenant_settings import default_namespace
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.problem import first_problems
from kaigen.kubernetes.manifest import mapping
from kaigen.pipeline.result import Compiled
from kaigen.pipeline.sources import relative_path
from kaigen.tenancy.violations import binding_findings, syncer_secret_findings, tenant_findings

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.pipeline.load import LoadedSource


def compile_plain(
    loaded: LoadedSource, names: Collection[tuple[str, str]], config: Config, found: Diagnostics
) -> Compiled | None:
    """Return the app of a file's plain objects, with their schemas and names checked; None when an object has no name.

    Args:
        loaded: the file.
        names: namespace and name of every app of a spec, which this one must not have.
        config: the repository's settings.
        found: receives errors and warnings.
    """
    documents = loaded.plain
    nameless = [document for document in documents if not document.name]
    for document in nameless:
        changed = [each for each in folder_build_findings(mapping(document.data)) if each.code == CHANGED_BY_BUILD]
        found.extend(problem.located(document.mark(problem.path)) for problem in changed)
        if not changed:
            mark = document.mark(("metadata", "name"))
            found.add(Diagnostic("KG0203", "`metadata.name` is missing", mark, path="metadata.name"))
    if nameless:
        return None
    source = relative_path(loaded.source.file, config.root)
    bodies: list[Any] = [document.data for document in documents]
    namespace = plain_namespace(bodies, default_namespace(source, config.tenants, config.namespace))
    taken = {name for place, name in names if place == namespace}
    app = passthrough_app(app_name(source, config.specs, taken), source, bodies, namespace, loaded.source.text)
    app = replace(app, digest_in_version=config.digest_in_version)
    objects = app.render()
    for item, document in zip(objects, documents, strict=True):
        problems = [
            *check_object(item.body, target=config.kubernetes),
            *version_findings(item.body, config.controllers),
            *(default_findings(item.body) if config.has_argocd else ()),
            *check_names(item.body),
            *grant_findings(item.body, namespace, config.allow),
            *tenant_findings(item.body, namespace, source, config.tenants),
            *syncer_secret_findings(item.body, namespace, source, config.tenants, config.syncer_secrets),
        ]
        for problem in first_problems(problems):
            hint = as_written(problem.hint, document.raw(problem.path))
            found.add(replace(problem, hint=hint).located(document.mark(problem.path)))
    for number, problem in binding_findings([item.body for item in objects], namespace, source, config.tenants):
        found.add(problem.located(documents[number].mark(problem.path)))
    return Compiled(app, {}, objects, documents=documents)
