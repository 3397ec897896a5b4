"""A plane by hand: ``python -m tests.cluster up`` starts one and prints how to use it, ``… down`` ends it."""

from __future__ import annotations

import argparse
import shlex
import sys

from tests.cluster.first import PARTS, TrialFailed, try_first
from tests.cluster.images import ImageFailed
from tests.cluster.network import NetworkMissing
from tests.cluster.processes import PlaneError
from tests.cluster.tools.parts import ToolsMissing, locate, locate_node
from tests.cluster.up import down, hold, up


def main(arguments: list[str]) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("command", choices=["up", "down", "hold", "try"], help="hold is what up starts")
    parser.add_argument("--argocd", action="store_true", help="with Argo CD's controllers")
    parser.add_argument("--flux", action="store_true", help="with Flux's controllers")
    parser.add_argument("--node", action="store_true", help="with one real node instead of simulated ones")
    parser.add_argument("--parts", default="serve", help="what try runs: serve,tune,notebook")
    parser.add_argument("--keep", action="store_true", help="keep what try started until Ctrl-C")
    given = parser.parse_args(arguments)
    parts = given.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--parts: no {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if given.command == "hold":
        hold(argocd=given.argocd, flux=given.flux, node=given.node)
    elif given.command == "try":
        try_first(parts, keep=given.keep)
    elif given.command == "down":
        print("the plane is down" if down() else "no plane is up", file=sys.stderr)
    else:
        programs = locate_node() if given.node else locate()
        state = up([f"--{name}" for name in ("argocd", "flux", "node") if getattr(given, name)])
        for name, value in {"KUBECONFIG": state.kubeconfig, **state.variables}.items():
            print(f"export {name}={shlex.quote(value)}")
        if state.network:
            print(f'in_cluster() {{ nsenter --net=/run/netns/{state.network} "$@"; }}')
            for name in ("kubectl", "helm"):
                print(f'{name}() {{ in_cluster {programs[name]} "$@"; }}')
        print(f"logs: {state.logs}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ToolsMissing, NetworkMissing, ImageFailed, PlaneError, TrialFailed, TimeoutError) as error:
        sys.exit(f"cluster: {error}")
