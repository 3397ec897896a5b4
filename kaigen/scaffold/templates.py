"""The files of a new repository: templates in `files/`, filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from kaigen import __version__
from kaigen.catalog.images import default_images
from kaigen.catalog.profiles import profile_names
from kaigen.config.file import CONFIG_ENTRY
from kaigen.config.layers import SYNCERS
from kaigen.config.overrides import OVERRIDES_ENTRY
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.registry import own_kinds
from kaigen.kinds.base import APP_NAME_MAX, DNS_LABEL
from kaigen.kinds.schema import combined_schema, json_schema
from kaigen.scaffold.place import Place

FILES = Path(__file__).parent / "files"
TAG = f"v{__version__}"

CONFIG = "kaigen.yaml"
README = "README.md"
EXAMPLES = ("specs/evaluate.yaml", "specs/qwen.yaml")
IGNORED = ".gitignore"
ATTRIBUTES = ".gitattributes"
HOOKS = ".pre-commit-config.yaml"
SETTINGS = ".vscode/settings.json"
GITLAB = ".gitlab-ci.yml"
PRETTIER = ".prettierignore"
YAMLLINT = (".yamllint", ".yamllint.yaml", ".yamllint.yml")

NO_REPOSITORY = "https://git.example.com/team/repository.git"
_LONGEST_NAMESPACE = 63
_RUNNER = r"[A-Za-z0-9][A-Za-z0-9._-]*"


class Choices(Struct, frozen=True):
    """What the user chooses about a new repository.

    Attributes:
        profile: cluster profile.
        namespace: of the apps.
        argocd: write objects for Argo CD.
        flux: write objects for Flux.
        environments: names, in the order of promotion; empty for none.
        syncers: what syncs an environment instead, `argocd` or `flux`, by its name.
        reaper: add the chart of kaigen-reaper, with objects for what syncs.
        runner: labels of the runners of GitHub Actions.
        profiles: cluster profiles of environments with another one, by name.
    """

    profile: str = "generic"
    namespace: str = "ml"
    argocd: bool = False
    flux: bool = False
    environments: tuple[str, ...] = ()
    syncers: Mapping[str, str] = field(default_factory=dict)
    reaper: bool = False
    runner: tuple[str, ...] = ("ubuntu-latest",)
    profiles: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_synced(self) -> bool:
        """Whether Argo CD or Flux syncs the tree, or that of an environment."""
        return bool(self.argocd or self.flux or self.syncers)

    def check(self) -> None:
        """Check the values.

        Raises:
            InputError: one of them is not possible.
        """
        found = []
        for profile in dict.fromkeys([self.profile, *self.profiles.values()]):
            if profile not in profile_names():
                hint = did_you_mean(profile, profile_names()) or "known: " + ", ".join(profile_names())
                found.append(Diagnostic("KG0703", f"unknown `profile` `{profile}`", hint=hint))
        for name in self.profiles:
            if name not in self.environments:
                hint = did_you_mean(name, self.environments) or f"add it: `--environments {name},…`"
                message = f"`--profile` names the environment `{name}`, which is not created"
                found.append(Diagnostic("KG0703", message, hint=hint))
        names = [(name, "an environment", APP_NAME_MAX) for name in self.environments]
        names += [(self.namespace_of(name), "a namespace", _LONGEST_NAMESPACE) for name in self.environments]
        for name, what, longest in [(self.namespace, "a namespace", _LONGEST_NAMESPACE), *names]:
            if not re.fullmatch(DNS_LABEL, name) or len(name) > longest:
                hint = f"use lower-case letters, digits and dashes, at most {longest} characters"
                found.append(Diagnostic("KG0703", f"`{name}` cannot be {what}", hint=hint))
        for label in self.runner:
            if not re.fullmatch(_RUNNER, label):
                hint = "for example `--runner self-hosted,linux`"
                found.append(Diagnostic("KG0703", f"`{label}` cannot be a label of a runner", hint=hint))
        for syncer in self.syncers.values():
            if syncer not in SYNCERS:
                message = f"unknown `{syncer}`: an environment is synced by argocd or flux"
                found.append(Diagnostic("KG0703", message, hint="for example `--environments dev=argocd,prod=flux`"))
        if found:
            raise InputError(found)

    def namespace_of(self, environment: str) -> str:
        """Return the namespace of an environment."""
        return f"{self.namespace}-{environment}"


def root_files(choices: Choices, place: Place) -> dict[str, str]:
    """Return the files in the folder of kaigen.yaml by path."""
    words = {
        "profile": choices.profile,
        "namespace": choices.namespace,
        "gitops": _gitops(choices, place),
        "environments": _environments(choices),
        **default_images(),
    }
    return {
        CONFIG: fill_template("kaigen.yaml", words),
        README: fill_template("README.md", words),
        IGNORED: fill_template("gitignore", words),
        ATTRIBUTES: fill_template("gitattributes", words),
        "specs/evaluate.yaml": fill_template("job.yaml", words),
        "specs/qwen.yaml": fill_template("model.yaml", words),
        **schema_files(),
    }


def schema_files() -> dict[str, str]:
    """Return the schemas for editors by path."""
    schemas = {
        ".kaigen/config.json": json_schema(CONFIG_ENTRY),
        ".kaigen/schema.json": combined_schema((*own_kinds(), OVERRIDES_ENTRY), embedded=True),
    }
    return {path: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for path, schema in schemas.items()}


def top_files(place: Place, runner: Sequence[str] = ("ubuntu-latest",)) -> dict[str, str]:
    """Return the files that belong into the top folder of the Git repository by path: pipelines, hooks, editor.

    Args:
        place: the folder in the Git repository.
        runner: labels of the runners of GitHub Actions.
    """
    below = place.below
    inside = f"{below}/" if below else ""
    title = f"kaigen {below}" if below else "kaigen"
    command = f"kaigen -C {below}"
    words = {
        "tag": TAG,
        "title": title,
        "runner": runner[0] if len(runner) == 1 else f"[{', '.join(runner)}]",
        "folder": f"\n        with: {{working-directory: {below}}}" if below else "",
        "inputs": f"{{version: {TAG[1:]}, folder: {below}}}" if below else f"{{version: {TAG[1:]}}}",
        "validate": _hook(below, f"{command} validate", r"(kaigen\.yaml|specs/)"),
        "render": _hook(below, f"{command} -q render", r"(kaigen\.yaml|specs/|rendered/)"),
    }
    settings = {
        "yaml.schemas": {
            f"{inside}.kaigen/schema.json": f"{inside}specs/**/*.yaml",
            f"{inside}.kaigen/config.json": f"{inside}kaigen.yaml",
        }
    }
    pipeline = (
        {GITLAB: fill_template("gitlab.yaml", words)}
        if place.is_gitlab
        else {
            f".github/workflows/{title.replace(' ', '-').replace('/', '-')}.yaml": fill_template("workflow.yaml", words)
        }
    )
    return {**pipeline, HOOKS: fill_template("pre-commit.yaml", words), SETTINGS: json.dumps(settings, indent=2) + "\n"}


def fill_template(name: str, words: Mapping[str, str]) -> str:
    """Return a template of `files/` with its words filled in."""
    text = (FILES / name).read_text(encoding="utf-8")
    filled = re.sub(r"@([a-z]+)@", lambda match: words[match[1]], text)
    return filled.rstrip("\n") + "\n"


def _hook(below: str, command: str, files: str) -> str:
    """Return the fields of a hook that runs in a folder of the Git repository; nothing for its top."""
    if not below:
        return ""
    return f"        entry: {command}\n        files: ^{re.escape(below)}/{files}\n"


def _gitops(choices: Choices, place: Place) -> str:
    """Return the block for Argo CD and Flux; as a comment where neither is chosen, or where it would be empty.

    Without a URL that a cluster can reach, the repository is a comment: the next command says that it is missing.
    """
    folder = f"{place.below}/rendered" + ("/{env}" if choices.environments else "")
    lines = ["gitops:", f"  repository: {place.repository or NO_REPOSITORY}"]
    if place.below:
        lines.append(f"  path: {folder}")
    lines += ["  argocd: {}"] if choices.argocd or not choices.is_synced else []
    lines += ["  flux: {}"] if choices.flux or not choices.is_synced else []
    head = "# Objects for the tools that sync rendered/, written next to the apps"
    if not choices.is_synced:
        return "\n".join([f"{head}; keep the one that you use:", *(f"# {line}" for line in lines)])
    if not place.repository:
        head += "; set the repository that they read"
        lines[1] = f"  # {lines[1].strip()}"
        if len(lines) == 2:
            return "\n".join([f"{head}:", "# gitops:", f"#   {lines[1].strip('# ')}"])
    return "\n".join([f"{head}.", *lines])


def _environments(choices: Choices) -> str:
    names = choices.environments
    lines = ["environments:"]
    for name in names or ("dev", "prod"):
        profile = f", profile: {choices.profiles[name]}" if name in choices.profiles else ""
        syncer = f", gitops: {{{choices.syncers[name]}: {{}}}}" if name in choices.syncers else ""
        lines.append(f"  {name}: {{namespace: {choices.namespace_of(name)}{profile}{syncer}}}")
    lines.append(f"promotion: [{', '.join(names or ('dev', 'prod'))}]")
    head = "# The same specs for several namespaces or clusters; each is rendered into a folder of its name"
    if names:
        return "\n".join([f"{head}.", *lines])
    return "\n".join([f"{head}:", *(f"# {line}" for line in lines)])
