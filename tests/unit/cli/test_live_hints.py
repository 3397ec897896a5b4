"""Commands in hints are for the program and the cluster of the call."""

from __future__ import annotations

from kaigen.cli.console import Console
from kaigen.cli.live.flavor import EGPU, KAIGEN
from kaigen.cli.live.session import Session


def test_a_hint_names_the_program_the_namespace_and_the_context() -> None:
    assert Session(Console(), KAIGEN).command("list") == "kaigen job list"
    session = Session(Console(), EGPU, namespace="ml", context="my lab", kubeconfig="k.yaml")
    assert session.command("logs", "cat") == "egpu logs cat -n ml --context 'my lab' --kubeconfig k.yaml"
