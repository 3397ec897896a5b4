"""Hints for commands and options of other tools: what to type instead in kaigen."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import click

from kaigen.diagnostics.suggest import did_you_mean
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.dialects import registry

_VALIDATE = "run `kaigen validate` to check specs, or `kaigen check` to check Kubernetes manifests"
_RENDER = "run `kaigen render` to write the manifests, or `kaigen render --stdout` to print them"
_DEPLOY = (
    "run `kaigen render` and commit, so that Argo CD or Flux deploys it; without them, run "
    "`kaigen render --stdout | kubectl apply -f -`"
)
_DELETE = "delete the spec, then run `kaigen render` and commit"
_LIVE_DELETE = f"{_DELETE}; for what is not in Git, run `kaigen job delete` or `kaigen notebook delete`"
_KUBECTL = "use kubectl; run `kaigen status` for the state of apps in a cluster"
_LIST = "run `kaigen graph` for apps and their objects, `kaigen kinds` for kinds, `kaigen status` for apps in a cluster"
_LIVE_LIST = (
    f"{_LIST}, `kaigen images list` for images, `kaigen job list` for Jobs, `kaigen notebook list` for Notebooks"
)
_COPY = (
    "run `kaigen job cp` to copy files to the volume of a Job, `kaigen job fetch` to copy its result from there, or "
    "`kaigen job copy-file` to download a file into it"
)
_DIFF = "run `kaigen diff`, or `kaigen diff --base main` to compare with a branch"
_NEW = "run `kaigen init` to start a repository, or `kaigen job create` to run a Job that is not in Git"
_PUBLISH = "run `kaigen publish` to push the output to a branch or a registry"
_PUSH = (
    f"{_PUBLISH}, `kaigen build push` to push a folder that images are built from, or `kaigen images push` to build "
    "and push kaigen's own images"
)
_EFFECTIVE = "run `kaigen explain --effective APP` to show a spec with all its values"

OTHER_COMMANDS = {
    **dict.fromkeys(("lint", "test", "conform", "kubeconform"), _VALIDATE),
    **dict.fromkeys(("template", "generate", "synth", "compile", "manifests", "convert"), _RENDER),
    **dict.fromkeys(("apply", "install", "deploy", "up", "run", "start", "submit", "reconcile", "serve"), _DEPLOY),
    "sync": f"{_DEPLOY}; for the files of a Notebook, run `kaigen notebook sync`",
    **dict.fromkeys(("destroy", "uninstall", "down", "rm", "remove"), _DELETE),
    "delete": _LIVE_DELETE,
    **dict.fromkeys(("rollout", "scale", "top", "history"), _KUBECTL),
    "logs": "run `kaigen job logs` for a Job; for other pods use kubectl",
    "events": "run `kaigen job events` for a Job; for other objects use kubectl",
    "exec": "run `kaigen job debug` for a pod with the volume of a Job; for other pods use kubectl",
    "debug": "run `kaigen job debug` for a pod with the volume of a Job; for other pods use kubectl",
    "port-forward": "run `kaigen notebook open` for a Notebook; for other pods use kubectl",
    "open": "run `kaigen notebook open`",
    "watch": "run `kaigen job watch` for a Job, or `kaigen status --watch` for apps in a cluster",
    **dict.fromkeys(("cp", "fetch", "copy-file"), _COPY),
    "cleanup": "run `kaigen job cleanup` to delete volumes whose TTL is over",
    **dict.fromkeys(("suspend", "resume"), "run `kaigen notebook suspend` or `kaigen notebook resume`"),
    "get": f"{_LIST}, `kaigen job get` for a Job",
    "list": _LIVE_LIST,
    **dict.fromkeys(("ls", "api-resources", "tree"), _LIST),
    **dict.fromkeys(("preview", "changes"), _DIFF),
    **dict.fromkeys(("create", "new", "scaffold"), _NEW),
    **dict.fromkeys(("package", "export"), _PUBLISH),
    "push": _PUSH,
    "suggest": "run `kaigen tenants suggest` to print the grants that the specs of a folder need",
    **dict.fromkeys(("show", "describe", "inspect", "values"), _EFFECTIVE),
    "rollback": "revert the commit in Git, then let Argo CD or Flux sync it",
    "fmt": "kaigen does not change specs; run `kaigen validate` to check them",
    "edit": "edit the files in specs/, then run `kaigen render`",
    "pull": "kaigen downloads nothing: a Model describes what the cluster downloads",
    "help": "did you mean `kaigen --help`?",
    "version": "did you mean `kaigen --version`?",
}
"""Commands of helm, kubectl, kustomize, terraform, argocd, flux and others that kaigen does not have."""

_NAMESPACE = "set `namespace` in kaigen.yaml, or `metadata.namespace` in the spec"
_NO_CLUSTER = "leave it out: only commands that ask a cluster have it, such as `kaigen status`"
_CONTEXT = "use `--context` or `--kubeconfig`, with commands that ask a cluster, such as `kaigen status`"
_ENVIRONMENT = "use `--env`"
_WATCH = "run it again after a change: kaigen compiles only what changed; `kaigen status --watch` waits for a cluster"
_NO_FILES = "name files and folders without an option"
_QUESTIONS = "leave it out: kaigen asks nothing"

OTHER_OPTIONS = {
    **dict.fromkeys(("--kube-context", "--server"), _CONTEXT),
    **dict.fromkeys(("-e", "--environment", "--overlay", "--stage", "--target"), _ENVIRONMENT),
    **dict.fromkeys(("-y", "--yes", "--auto-approve"), _QUESTIONS),
    **dict.fromkeys(("--file", "-k"), _NO_FILES),
    **dict.fromkeys(("--debug", "--trace"), "use `-v`"),
    "--json": "use `--output json`",
    "--kube-version": "set `kubernetes` in kaigen.yaml",
}
"""Options that no command has."""

OPTIONS_OF_OTHERS = {
    **dict.fromkeys(("-n", "--namespace"), _NAMESPACE),
    **dict.fromkeys(("--kubeconfig", "--context"), _NO_CLUSTER),
    **dict.fromkeys(("-w", "--watch"), _WATCH),
    **dict.fromkeys(("-f", "--filename", "--recursive"), _NO_FILES),
}
"""Options that some commands have, and what to do with all others."""

OPTIONS_OF = {
    ("render", "--dry-run"): "use `--check` to show what would change, or `--stdout` to print the objects",
    ("render", "--diff"): "use `--check`",
    ("render", "--output-dir"): "use `--output`",
    ("render", "--set-string"): "use `--set`, with the value in quotes",
    ("render", "--show-only"): "use `--stdout` with the path of one spec",
    ("diff", "--dry-run"): "leave it out: `kaigen diff` changes nothing",
    ("diff", "--cached"): "use `--base`: `kaigen diff` compares the files in the working folder with a commit",
    ("validate", "--dry-run"): "leave it out: `kaigen validate` writes nothing",
    ("plan", "--model-name"): "use `--preset`",
}


def command_hint(name: str) -> str:
    """Return what to run instead of an unknown command; empty if nothing is known about it."""
    if re.fullmatch("KG[0-9]{4}", name):
        return f"run `kaigen explain {name}`"
    if name in OTHER_COMMANDS:
        return OTHER_COMMANDS[name]
    if os.path.exists(name) or name.endswith((".yaml", ".yml")):
        return f"run `kaigen render {name}`"
    if any(name.split(".")[0] in (entry.kind, entry.system) for entry in registry.own_kinds()):
        return f"run `kaigen explain {name}`"
    return ""


def unknown_command(name: str, known: Sequence[str]) -> str:
    """Return the message for a command that kaigen does not have."""
    hint = command_hint(name) or did_you_mean(name, known) or "run `kaigen --help` for all commands"
    return f"no such command: {name}; {hint}"


def explain_habit(error: click.UsageError) -> click.UsageError:
    """Return a usage error with what to type instead, if the mistake is a habit from another tool."""
    command = error.ctx.command.name if error.ctx is not None and error.ctx.command.name else ""
    if isinstance(error, click.NoSuchOption):
        name = error.option_name
        hint = OPTIONS_OF.get((command, name)) or OTHER_OPTIONS.get(name) or OPTIONS_OF_OTHERS.get(name)
        return click.UsageError(f"no such option: {error.option_name}; {hint}", error.ctx) if hint else error
    extra = re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", error.message)
    if extra is None:
        return error
    return click.UsageError(f"unexpected argument: {extra[1]}; {_argument_hint(command, extra[1])}", error.ctx)


def _argument_hint(command: str, text: str) -> str:
    if command == "diff":
        return f"run `kaigen diff --base {text.split(' ')[0]}` to compare with a branch, tag or commit"
    return f"`kaigen {command} --help` lists the arguments"
