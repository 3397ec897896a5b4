"""Findings for violations of the Pod Security Standards."""

from __future__ import annotations

from kaigen.check import codes
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.pod_security import Control, violations
from kaigen.kubernetes.pods import PodTemplate


def security_findings(template: PodTemplate, level: str) -> list[Problem]:
    """Return a finding for every violation of a Pod Security level in one pod."""
    found = []
    for violation in violations(template, level):
        subject = f"the container `{violation.container}`" if violation.container else "the pod"
        message = f"{subject} {violation.problem}"
        found.append(Problem(_CODES[violation.control], message, violation.path, violation.hint))
    return found


_CODES: dict[Control, str] = {control: getattr(codes, control.name) for control in Control}
