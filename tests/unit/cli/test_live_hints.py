"""Commands in hints are for the program and the cluster of the call."""

from __future__ import annotations

from typing import Any

from kaigen.cli.console import Console
from kaigen.cli.live.flavor import EGPU, KAIGEN
from kaigen.cli.live.session import Session


def test_a_hint_names_the_program_the_namespace_and_the_context() -> None:
    assert Session(Console(), KAIGEN).command("list") == "kaigen job list"
    session = Session(Console(), EGPU, namespace="ml", context="my lab", kubeconfig="k.yaml")
    assert session.command("logs", "cat") == "egpu logs cat -n ml --context 'my lab' --kubeconfig k.yaml"


def test_a_command_of_another_program_and_namespace_is_for_the_same_cluster() -> None:
    session = Session(Console(), KAIGEN, namespace="ml", kubeconfig="k.yaml")
    command = session.command("suspend", "lab", program="kaigen notebook", namespace="lab")
    assert command == "kaigen notebook suspend lab -n lab --kubeconfig k.yaml"


def test_a_job_has_the_name_by_which_its_user_finds_it() -> None:
    session = Session(Console(), EGPU)

    def job(name: str, app: str) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "ml", "labels": {"app.kubernetes.io/name": app}}
        return {"metadata": metadata, "spec": {"template": {"spec": {}}}}

    assert session.name_of(job("ephemeralaccelerationjob-cat", "cat")) == "cat"
    # Of a spec in Git, there may be several runs.
    assert session.name_of(job("cat-1a2b3c4d", "cat")) == "cat-1a2b3c4d"
