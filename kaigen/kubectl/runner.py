"""Runs `kubectl` with the user's configuration. What a cluster lacks is an empty answer, and not an error."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from kaigen.diagnostics.errors import SystemFailure
from kaigen.kubernetes.manifest import Object, entries, mapping

TIMEOUT_S = 30
"""Seconds to wait for an answer of the cluster."""

_NOT_FOUND = (
    "(NotFound)",
    "the server doesn't have a resource type",
    "could not find the requested resource",
)


class Forbidden(SystemFailure):
    """The user may not read something."""


class Kubectl:
    """The cluster of a context of kubectl."""

    def __init__(self, context: str = "") -> None:
        """Use a context.

        Args:
            context: its name; empty for the current one.
        """
        self._options = (f"--request-timeout={TIMEOUT_S}s", *((f"--context={context}",) if context else ()))

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the objects that `kubectl get` lists.

        Raises:
            Forbidden: the user may not list them.
            SystemFailure: kubectl is missing or fails.
        """
        answer = self.json("get", *arguments, "--output=json")
        return [item for _, item in entries((answer or {}).get("items"))]

    def create(self, objects: Sequence[Object]) -> list[dict[str, Any]]:
        """Create objects, and return the answers in the same order.

        Raises:
            Forbidden: the user may not create one.
            SystemFailure: kubectl is missing or fails.
        """
        given = "\n".join(json.dumps(item) for item in objects)
        # The server validates. kubectl would list CustomResourceDefinitions, which not every user may do.
        out = self.run("create", "--filename=-", "--output=json", "--validate=false", given=given)
        answers = []
        while out:
            answer, end = _decoded(out)
            answers.append(mapping(answer))
            out = out[end:].lstrip()
        return answers

    def json(self, *arguments: str) -> dict[str, Any] | None:
        """Return the answer of a command; None when the cluster does not have what is read.

        Raises:
            Forbidden: the user may not read it.
            SystemFailure: kubectl is missing or fails.
        """
        out = self.run(*arguments)
        return mapping(_decoded(out)[0]) if out else None

    def run(self, *arguments: str, given: str | None = None) -> str:
        """Return the output of a command; empty when the cluster does not have what is read.

        Args:
            arguments: of kubectl.
            given: its standard input; None for none.

        Raises:
            Forbidden: the user may not read it.
            SystemFailure: kubectl is missing or fails.
        """
        standard_input = {"stdin": subprocess.DEVNULL} if given is None else {"input": given}
        try:
            done = subprocess.run(
                ["kubectl", *arguments, *self._options],
                capture_output=True,
                check=False,
                timeout=2 * TIMEOUT_S,
                encoding="utf-8",
                errors="replace",
                **standard_input,
            )
        except FileNotFoundError:
            hint = "install kubectl"
            raise SystemFailure("kubectl is not installed or not on the PATH", hint=hint) from None
        except subprocess.TimeoutExpired:
            raise SystemFailure(f"kubectl did not answer within {2 * TIMEOUT_S} seconds") from None
        except OSError as error:
            raise SystemFailure(f"cannot run kubectl: {error.strerror or error}") from None
        if done.returncode == 0:
            return str(done.stdout)
        if any(part in done.stderr for part in _NOT_FOUND):
            return ""
        if "(Forbidden)" in done.stderr:
            raise Forbidden(f"kubectl: not allowed to {arguments[0]} {arguments[1]}")
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        hint = "check the context with `kubectl config get-contexts`, or name another one with --context"
        raise SystemFailure(f"kubectl: {lines[-1].removeprefix('error: ')}", hint=hint)


def _decoded(out: str) -> tuple[object, int]:
    """Return the first value of JSON texts, and where it ends."""
    try:
        return json.JSONDecoder().raw_decode(out)
    except ValueError:
        raise SystemFailure("the answer of kubectl is not JSON") from None
