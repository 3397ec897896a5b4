"""Plans a publication: renders everything before the first push."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaigen.config.publish import Publish
from kaigen.config.settings import FILE_NAME, LOCK_NAME, pins_path
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import InputError
from kaigen.emit.kustomizations import group_kustomizations
from kaigen.git.remote import Git, check_branch
from kaigen.git.repository import require_repository
from kaigen.output.contents import data_of
from kaigen.output.index import path_problem
from kaigen.pipeline.run import Run
from kaigen.pipeline.sources import relative_path
from kaigen.publish.artifact import push_artifact
from kaigen.publish.artifacts import chart_artifact, expand, manifests_artifact, unique
from kaigen.publish.branch import PublishOptions, Tree, publish_branch
from kaigen.publish.results import ArtifactResult, BranchResult
from kaigen.publish.source import Source, read_source

if TYPE_CHECKING:
    from kaigen.config.settings import Config, Format
    from kaigen.pipeline.result import Compilation
    from kaigen.publish.artifact import Artifact
    from kaigen.signing.keys import PrivateKey

DEFAULT_BRANCH = "deploy"


class Destination(Struct, frozen=True):
    """Where to publish.

    Attributes:
        remote: name or URL of the Git remote.
        branch: the deploy branch, with `{env}` for the environment; empty to publish to no branch.
        path: the folder in the branch, also with `{env}`; None for the output folder's path in the repository.
        charts: the OCI repository to push charts below; empty for none.
        manifests: the OCI repository to push manifests to; empty for none.
        version_suffix: append a digest of its content to each chart's version.
        plain_http: use HTTP without TLS also for registries on other machines.
    """

    remote: str = "origin"
    branch: str = DEFAULT_BRANCH
    path: str | None = None
    charts: str = ""
    manifests: str = ""
    version_suffix: bool = False
    plain_http: bool = False


class Requested(Struct, frozen=True):
    """The destination that the command line names; None where it leaves the choice to kaigen.yaml."""

    remote: str | None = None
    branch: str | None = None
    path: str | None = None
    charts: str | None = None
    manifests: str | None = None
    version_suffix: bool | None = None
    plain_http: bool = False


def destination(settings: Publish | None, requested: Requested) -> Destination:
    """Return where to publish. The command line overrides kaigen.yaml.

    If the command line names a target (branch, charts, manifests), only the targets that it names are published.
    If it names none, those of kaigen.yaml are; if that names none either, the branch `deploy`.

    Args:
        settings: the block `publish` of kaigen.yaml.
        requested: what the command line names.
    """
    base = settings or Publish()
    branch, charts, manifests = requested.branch, requested.charts, requested.manifests
    if not (branch or charts or manifests):
        branch, charts, manifests = base.branch, base.charts, base.manifests
    if not (branch or charts or manifests):
        branch = DEFAULT_BRANCH
    suffix = base.version_suffix if requested.version_suffix is None else requested.version_suffix
    return Destination(
        remote=requested.remote or base.remote,
        branch=branch or "",
        path=base.path if requested.path is None else requested.path,
        charts=charts or "",
        manifests=manifests or "",
        version_suffix=suffix,
        plain_http=requested.plain_http,
    )


class Plan(Struct, frozen=True):
    """A publication that is rendered and ready to push.

    Attributes:
        git: the repository of the specs, and the remote.
        source: what was rendered.
        branches: the trees of each branch.
        artifacts: charts and manifests.
        diagnostics: warnings about the specs.
        plain_http: use HTTP without TLS also for registries on other machines.
    """

    git: Git
    source: Source
    branches: Mapping[str, Sequence[Tree]]
    artifacts: Sequence[Artifact]
    diagnostics: Sequence[Diagnostic]
    plain_http: bool = False

    def publish(
        self,
        options: PublishOptions | None = None,
        *,
        key: PrivateKey | None = None,
        pause: Callable[[float], object] | None = None,
    ) -> Iterator[BranchResult | ArtifactResult]:
        """Publish to registries first, then to branches, so that a branch refers only to existing artifacts.

        Args:
            options: how to publish.
            key: signs charts and manifests.
            pause: waits a number of seconds before a branch is tried again.

        Yields:
            The result of each branch and artifact, as soon as it is published.

        Raises:
            InputError, CheckFailed, SystemFailure: as `publish_branch` and `push_artifact`. Everything yielded so
                far is published; the remaining targets are not.
        """
        options = options or PublishOptions()
        for artifact in self.artifacts:
            yield push_artifact(
                self.git,
                self.source,
                artifact,
                plain_http=self.plain_http,
                allow_older=options.allow_older,
                dry_run=options.dry_run,
                key=key,
            )
        for branch, trees in self.branches.items():
            yield publish_branch(self.git, self.source, branch, trees, options, pause=pause)


def make_plan(configs: Sequence[Config], where: Destination, *, allow_dirty: bool = False) -> Plan:
    """Render each environment and return what goes where. Writes nothing.

    Args:
        configs: the settings of each environment; all of one folder.
        where: where to publish.
        allow_dirty: accept uncommitted changes.

    Raises:
        InputError: all errors of the specs; KG0901, KG0902, KG0905, KG0906, KG0907 for the destination.
    """

    root = configs[0].root
    require_repository(root)
    git = Git.of(root, where.remote) if where.branch else Git(root)
    source = read_source(git, configs, allow_dirty=allow_dirty)
    branches: dict[str, list[Tree]] = {}
    artifacts: list[Artifact] = []
    warnings: dict[Diagnostic, None] = {}
    for config in configs:
        config = _with_versions(config, where)
        run = Run.load((), config, use_cache=False)
        compilation = run.compilation()
        warnings |= dict.fromkeys(compilation.diagnostics)
        if where.branch:
            branch = check_branch(git, expand(where.branch, config))
            path = _folder(where, config, source)
            files = _files(run)
            branches.setdefault(branch, []).append(Tree(config.environment, path, files))
        if not (where.charts or where.manifests):
            continue
        materials = _materials(run, source)
        if where.charts:
            artifacts += [chart_artifact(item, config, where.charts, materials) for item in compilation.apps]
        if where.manifests:
            artifacts.append(_manifests(run, compilation, source, where.manifests, materials))
    for branch, trees in branches.items():
        _require_separate_folders(branch, trees)
    return Plan(git, source, branches, unique(artifacts), tuple(warnings), where.plain_http)


def _with_versions(config: Config, where: Destination) -> Config:
    """Return the settings with the destination's choice of versions, so that the trees name what is pushed."""
    publish = config.publish or Publish()
    return replace(config, publish=replace(publish, version_suffix=where.version_suffix))


def _files(run: Run, form: Format | None = None) -> dict[str, bytes]:
    """Return the output tree of a run with its content."""
    return {path: data_of(content) for path, content in run.files(form).items()}


def _manifests(run: Run, compilation: Compilation, source: Source, url: str, materials: Mapping[str, str]) -> Artifact:
    config = run.config
    flux = config.gitops.flux if config.gitops else None
    # The Flux objects are in the artifact only if Flux reads them from there; anyone else who applies the whole
    # artifact wants just the apps.
    read_by_flux = flux is not None and flux.oci is not None
    form: Format = "chart" if config.format == "chart" else "manifests"
    files = _files(run, form) if read_by_flux else _apps(compilation, config)
    return manifests_artifact(compilation, files, config, source, url, materials)


def _apps(compilation: Compilation, config: Config) -> dict[str, bytes]:
    """Return the manifests of the apps, with the kustomizations of their namespaces if the output has those."""
    files = compilation.files("manifests")
    return files | group_kustomizations(files) if config.kustomizations else files


def _folder(where: Destination, config: Config, source: Source) -> str:
    """Return the folder in the branch, relative to its top, without slashes at its ends.

    Raises:
        InputError: KG0902.
    """
    default = "/".join(part for part in (source.folder, config.output) if part)
    text = default if where.path is None else expand(where.path, config)
    path = "/".join(part for part in text.split("/") if part not in ("", "."))
    problem = "is not relative to the branch" if text.startswith("/") else path_problem(path) if path else ""
    if problem:
        hint = "for example `--path clusters/prod`, or `--path .` for the top of the branch"
        raise InputError.of("KG0902", f"the folder `{text}` {problem}".replace("output directory", "branch"), hint=hint)
    return path


def _require_separate_folders(branch: str, trees: Sequence[Tree]) -> None:
    for number, one in enumerate(trees):
        for other in trees[number + 1 :]:
            first, second = sorted((one.path, other.path))
            if first == second or not first or second.startswith(f"{first}/"):
                both = f"`{one.environment}` and `{other.environment}`"
                message = f"{both} would share a folder, {first or 'the top'} of `{branch}`"
                raise InputError.of("KG0905", message, hint="put `{env}` into --branch or --path")


def _materials(run: Run, source: Source) -> dict[str, str]:
    """Return the SHA-256 of every input file, by its path in the repository, with its commit if it follows one."""
    digests, config = {}, run.config
    paths: list[str] = []
    for unit in run.units:
        if unit.source.commit:
            name = relative_path(unit.source.file, config.root)
            digests["/".join(filter(None, (source.folder, f"{name}@{unit.source.commit}")))] = unit.source.digest
        elif not config.follows_commits:
            paths.append(unit.source.path)
    root = config.root.absolute()
    pins = [pins_path(config.root, config.environment)] if config.environment else []
    named = [config.root / FILE_NAME, config.root / LOCK_NAME, *pins]
    for path in [*named, *map(Path, paths)]:
        if path.is_file() and path.absolute().is_relative_to(root):
            inside = path.absolute().relative_to(root).as_posix()
            name = f"{source.folder}/{inside}" if source.folder else inside
            digests[name] = sha256(path.read_bytes()).hexdigest()
    return digests
