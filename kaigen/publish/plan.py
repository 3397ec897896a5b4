"""Everything that one call publishes: all of it is rendered before the first of it goes anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from kaigen.diagnostics.diagnostic import Diagnostic, InputError
from kaigen.git.command import Git, check_branch
from kaigen.publish.branch import Tree, Wishes, publish_branch
from kaigen.publish.results import ArtifactResult, BranchResult
from kaigen.publish.source import Source, read_source

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.pipeline.run import Compilation, Loaded
    from kaigen.publish.artifact import Artifact

DEFAULT_BRANCH = "deploy"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to publish.

    Attributes:
        remote: name or URL of the Git remote.
        branch: the deploy branch, `{env}` in it for the environment; empty to leave Git out.
        path: the folder in it, likewise; None for the output folder's path in the repository.
        charts: the OCI repository that charts go below; empty for none.
        manifests: the OCI repository that manifests go to; empty for none.
        version_suffix: append a digest of its content to each chart's version.
        plain_http: speak to registries without TLS that are not on this machine.
    """

    remote: str = "origin"
    branch: str = DEFAULT_BRANCH
    path: str | None = None
    charts: str = ""
    manifests: str = ""
    version_suffix: bool = False
    plain_http: bool = False


def destination(settings: Mapping[str, Any], given: Mapping[str, Any]) -> Destination:
    """Where to publish, by the command line over kaigen.yaml.

    What the command line names (a branch, charts, manifests) is all that is published; when it names none of
    them, all that kaigen.yaml names; when that names none either, the branch `deploy`.

    Args:
        settings: the block `publish` of kaigen.yaml (`Config.publish`).
        given: values by field of `Destination`; those that are None were not given.
    """
    chosen = {key: value for key, value in given.items() if value is not None}
    targets = ("branch", "charts", "manifests")
    named: Mapping[str, Any] = next(
        (each for each in (chosen, settings) if any(each.get(key) for key in targets)),
        {"branch": DEFAULT_BRANCH},
    )
    rest = {**settings, **chosen}
    return Destination(
        remote=rest.get("remote", "origin"),
        branch=named.get("branch") or "",
        path=rest.get("path"),
        charts=named.get("charts") or "",
        manifests=named.get("manifests") or "",
        version_suffix=bool(rest.get("version_suffix")),
        plain_http=bool(rest.get("plain_http")),
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """What shall be published.

    Attributes:
        git: the repository of the specs, and the remote.
        source: what was rendered.
        branches: the trees of each branch.
        artifacts: charts and manifests.
        diagnostics: what is worth a warning.
        plain_http: speak to registries without TLS that are not on this machine.
    """

    git: Git
    source: Source
    branches: Mapping[str, Sequence[Tree]]
    artifacts: Sequence[Artifact]
    diagnostics: Sequence[Diagnostic]
    plain_http: bool = False

    def carry_out(
        self, wishes: Wishes | None = None, *, pause: Callable[[float], object] | None = None
    ) -> Iterator[BranchResult | ArtifactResult]:
        """Publish, registries first, so that what a branch refers to is there.

        Args:
            wishes: how to publish.
            pause: waits some seconds before a branch that moved is looked at again.

        Yields:
            What became of each part, when it is done.

        Raises:
            InputError, CheckFailed, SystemFailure: as `publish_branch` and `push_artifact` do; what was yielded is
                published, and the rest is not.
        """
        from kaigen.publish.artifact import push_artifact

        wishes = wishes or Wishes()
        for artifact in self.artifacts:
            yield push_artifact(
                self.git,
                self.source,
                artifact,
                plain_http=self.plain_http,
                allow_older=wishes.allow_older,
                dry_run=wishes.dry_run,
            )
        for branch, trees in self.branches.items():
            yield publish_branch(self.git, self.source, branch, trees, wishes, pause=pause)


def make_plan(
    configs: Sequence[Config],
    where: Destination,
    *,
    allow_dirty: bool = False,
) -> Plan:
    """Render each environment and say where it goes. Nothing is written anywhere.

    Args:
        configs: the settings of each environment; all of one folder.
        where: where to publish.
        allow_dirty: take changes that are not committed for a part of the source.

    Raises:
        InputError: with every problem of the specs; KG0901, KG0902, KG0905, KG0906, KG0907 of the rest.
    """
    from kaigen.git.read import require_repository
    from kaigen.pipeline.run import compile_specs, load_specs, output_files
    from kaigen.publish.artifacts import chart_artifact, filled, unique

    root = configs[0].root
    require_repository(root)
    git = Git.of(root, where.remote) if where.branch else Git(root, "", "", {})
    source = read_source(git, configs, allow_dirty=allow_dirty)
    branches: dict[str, list[Tree]] = {}
    artifacts: list[Artifact] = []
    warnings: dict[Diagnostic, None] = {}
    for config in configs:
        loaded = load_specs((), config)
        compilation = compile_specs(loaded, config)
        warnings |= dict.fromkeys(compilation.diagnostics)
        if where.branch:
            branch = check_branch(git, filled(where.branch, config))
            path = _folder(where, config, source)
            # What Argo CD and Flux read names folders of the branch.
            files = output_files(compilation, replace(config, output=path or "."))
            branches.setdefault(branch, []).append(Tree(config.environment, path, files))
        if not (where.charts or where.manifests):
            continue
        materials = _materials(loaded, config, source)
        if where.charts:
            artifacts += [
                chart_artifact(item, config, where.charts, materials, suffix=where.version_suffix)
                for item in compilation.apps
            ]
        if where.manifests:
            artifacts.append(_manifests(compilation, config, source, where.manifests, materials))
    for branch, trees in branches.items():
        _require_apart(branch, trees)
    return Plan(git, source, branches, unique(artifacts), tuple(warnings), where.plain_http)


def _manifests(
    compilation: Compilation, config: Config, source: Source, url: str, materials: Mapping[str, str]
) -> Artifact:
    from kaigen.pipeline.run import output_files
    from kaigen.publish.artifacts import manifests_artifact

    flux = (config.gitops or {}).get("flux") or {}
    # What Flux is told is in the artifact only when Flux is told to read it there: whoever applies all of an
    # artifact wants apps.
    told = bool(flux.get("oci"))
    files = output_files(compilation, config, "manifests") if told else compilation.files("manifests")
    return manifests_artifact(compilation, files, config, source, url, materials)


def _folder(where: Destination, config: Config, source: Source) -> str:
    """The folder in the branch, relative to its top, without slashes around it.

    Raises:
        InputError: KG0902.
    """
    from kaigen.output.index import path_problem
    from kaigen.publish.artifacts import filled

    default = "/".join(part for part in (source.folder, config.output) if part)
    text = default if where.path is None else filled(where.path, config)
    path = "/".join(part for part in text.split("/") if part not in ("", "."))
    problem = "is not relative to the branch" if text.startswith("/") else path_problem(path) if path else ""
    if problem:
        hint = "for example `--path clusters/prod`, or `--path .` for the top of the branch"
        raise InputError.of(
            "KG0902", f"the folder `{text}` {problem}".replace("output directory", "branch"), hint=hint
        )
    return path


def _require_apart(branch: str, trees: Sequence[Tree]) -> None:
    for number, one in enumerate(trees):
        for other in trees[number + 1 :]:
            first, second = sorted((one.path, other.path))
            if first == second or not first or second.startswith(f"{first}/"):
                both = f"`{one.environment}` and `{other.environment}`"
                message = f"{both} would be in one place, {first or 'the top'} of `{branch}`"
                raise InputError.of("KG0905", message, hint="put `{env}` into --branch or --path")


def _materials(loaded: Loaded, config: Config, source: Source) -> dict[str, str]:
    """SHA-256 of every file that was read, by its path in the repository."""
    from kaigen.config.settings import FILE_NAME, pins_path

    found = {}
    root = config.root.absolute()
    pins = [pins_path(config.root, config.environment)] if config.environment else []
    for path in [config.root / FILE_NAME, *pins, *map(config.root.__class__, loaded.files)]:
        if path.is_file() and path.absolute().is_relative_to(root):
            inside = path.absolute().relative_to(root).as_posix()
            name = f"{source.folder}/{inside}" if source.folder else inside
            found[name] = sha256(path.read_bytes()).hexdigest()
    return found
