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
_CLUSTER = "use kubectl: kaigen does not connect to clusters"
_LIST = "run `kaigen graph` for apps and their objects, `kaigen kinds` for kinds; for the cluster use kubectl"
_DIFF = "run `kaigen diff`, or `kaigen diff --base main` to compare with a branch"
_NEW = "run `kaigen init` to start a repository"
_PUBLISH = "run `kaigen publish` to push the output to a branch or a registry"
_EFFECTIVE = "run `kaigen explain --effective APP` to show a spec with all its values"

_COMMANDS = {
    **dict.fromkeys(("lint", "test", "verify", "conform", "kubeconform"), _VALIDATE),
    **dict.fromkeys(("template", "generate", "synth", "compile", "manifests", "convert"), _RENDER),
    **dict.fromkeys(
        ("apply", "install", "deploy", "sync", "up", "run", "start", "submit", "reconcile", "serve"), _DEPLOY
    ),
    **dict.fromkeys(("delete", "destroy", "uninstall", "down", "rm", "remove"), _DELETE),
    **dict.fromkeys(("logs", "exec", "rollout", "scale", "port-forward", "top", "history"), _CLUSTER),
    **dict.fromkeys(("get", "list", "ls", "api-resources", "status", "tree"), _LIST),
    **dict.fromkeys(("preview", "changes"), _DIFF),
    **dict.fromkeys(("create", "new", "scaffold"), _NEW),
    **dict.fromkeys(("package", "push", "export"), _PUBLISH),
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
_NO_CLUSTER = "leave it out: kaigen does not connect to clusters"
_ENVIRONMENT = "use `--env`"
_WATCH = "run the command again after a change: kaigen compiles only what changed"
_QUESTIONS = "leave it out: kaigen asks nothing"

_OPTIONS = {
    **dict.fromkeys(("-n", "--namespace"), _NAMESPACE),
    **dict.fromkeys(("--kubeconfig", "--context", "--kube-context", "--server"), _NO_CLUSTER),
    **dict.fromkeys(("-e", "--environment", "--overlay", "--stage", "--target"), _ENVIRONMENT),
    **dict.fromkeys(("-w", "--watch"), _WATCH),
    **dict.fromkeys(("-y", "--yes", "--auto-approve"), _QUESTIONS),
    **dict.fromkeys(
        ("-f", "--filename", "--file", "-k", "--recursive"), "name files and folders without an option"
    ),
    **dict.fromkeys(("--debug", "--trace"), "use `-v`"),
    "--json": "use `--output json`",
    "--kube-version": "set `kubernetes` in kaigen.yaml",
}
"""Options that several commands are asked for."""

_OPTIONS_OF = {
    ("render", "--dry-run"): "use `--check` to show what would change, or `--stdout` to print the objects",
    ("render", "--diff"): "use `--check`",
    ("render", "--output-dir"): "use `--output`",
    ("render", "--set-string"): "use `--set`, with the value in quotes",
    ("render", "--show-only"): "use `--stdout` with the path of one spec",
    ("diff", "--dry-run"): "leave it out: `kaigen diff` changes nothing",
    (
        "diff",
        "--cached",
    ): "use `--base`: `kaigen diff` compares the files in the working folder with a commit",
    ("validate", "--dry-run"): "leave it out: `kaigen validate` writes nothing",
    ("plan", "--model-name"): "use `--preset`",
}


def command_hint(name: str) -> str:
    """Return what to run instead of an unknown command; empty if nothing is known about it."""
    if re.fullmatch("KG[0-9]{4}", name):
        return f"run `kaigen explain {name}`"
    if name in _COMMANDS:
        return _COMMANDS[name]
    if os.path.exists(name) or name.endswith((".yaml", ".yml")):
        return f"run `kaigen render {name}`"
    if any(name.split(".")[0] in (entry.kind, entry.system) for entry in registry.KINDS):
        return f"run `kaigen explain {name}`"
    return ""


def unknown_command(name: str, known: Sequence[str]) -> str:
    """Return the message for a command that kaigen does not have."""
    hint = command_hint(name) or did_you_mean(name, known) or "run `kaigen --help` for all commands"
    return f"no such command: {name}; {hint}"


def explained(error: click.UsageError) -> click.UsageError:
    """Return a usage error with what to type instead, if the mistake is a habit from another tool."""
    command = error.ctx.command.name if error.ctx is not None and error.ctx.command.name else ""
    if isinstance(error, click.NoSuchOption):
        hint = _OPTIONS_OF.get((command, error.option_name)) or _OPTIONS.get(error.option_name)
        return click.UsageError(f"no such option: {error.option_name}; {hint}", error.ctx) if hint else error
    extra = re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", error.message)
    if extra is None:
        return error
    return click.UsageError(
        f"unexpected argument: {extra[1]}; {_argument_hint(command, extra[1])}", error.ctx
    )


def _argument_hint(command: str, text: str) -> str:
    if command == "diff":
        return f"run `kaigen diff --base {text.split(' ')[0]}` to compare with a branch, tag or commit"
    return f"`kaigen {command} --help` lists the arguments"
