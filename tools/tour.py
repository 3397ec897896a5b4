"""The text `make demo` prints at the end: written files, where to look, what to try next."""

from __future__ import annotations

import sys
from pathlib import Path

DEMO = Path("examples/demo")


def main() -> int:
    """Print the tour."""
    rendered = DEMO / "rendered"
    print(f"\nThe demo repository is in {DEMO}: specs/ was written by people, rendered/ by kaigen.\n")
    print("Each app has a folder with plain manifests and a Helm chart:\n")
    for app in sorted(path.parent for path in rendered.glob("*/*/[a-z]*/manifests")):
        objects = len(list((app / "manifests").glob("*.yaml"))) - 1
        print(f"  {app}  ({objects} objects)")
    print(
        f"""
Where to look:

  {DEMO}/kaigen.yaml               three environments on two clusters, for Argo CD and Flux
  {DEMO}/specs/chat.yaml           vLLM that serves a model
  {DEMO}/specs/workspace.yaml      a resource of KAITO, served by the same engine
  {DEMO}/specs/finetune-job.yaml   a resource of AI Operator, copied from its README
  {DEMO}/specs/qwen.yaml           the same work in kaigen's kinds: the weights …
  {DEMO}/specs/finetune.yaml       … and the training that waits for them
  {rendered}/dev/ml-dev/chat/manifests/deployment.yaml
                                        probes, drain, limits, the gate that waits for the weights
  {rendered}/dev/ml-dev/finetune/manifests/job.yaml
                                        the gate (an init container), the hash in the name, the hardened pod
  {rendered}/dev/ml-dev/finetune/chart/values.yaml
                                        every setting, with a comment
  {rendered}/prod/_argocd/apps/_project.ml-prod.yaml
                                        the permissions of Argo CD for these apps
  {rendered}/prod/_flux/apps/ml-prod.finetune.yaml
                                        the same for Flux: its dependencies and timeouts

Commands to try:

  . .venv/bin/activate && cd {DEMO}
  kaigen validate                       report every problem with its location
  sed -i.bak 's/memory: 24Gi/memory: 32Gi/' specs/finetune.yaml
  kaigen diff                           show the effect: a new run, and why
  kaigen render --check                 report that the tree is stale: exit code 1
  kaigen render                         update the tree; git diff shows the lines
  kaigen graph --env prod -o apps.html  draw the dependencies as a page; .svg, .png and .mmd, too
  kaigen secrets --env prod             list the Secrets the apps expect
  kaigen plan workspace-phi-4-mini      compute the GPUs that fit a model
  kaigen explain Job.spec.output        explain a field
  kaigen explain chat --env prod        show the spec of an app, with the origin of each value
  kaigen init ../my-repository          create a new repository
"""
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
