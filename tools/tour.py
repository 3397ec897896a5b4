"""What `make demo` prints at its end: what was written, where to look, what to try next."""

from __future__ import annotations

import sys
from pathlib import Path

DEMO = Path("examples/demo")


def main() -> int:
    """Print the tour."""
    rendered = DEMO / "rendered"
    print(f"\nThe demo repository is in {DEMO}: specs/ was written by people, rendered/ by kaigen.\n")
    print("What was written, an app a folder, each as plain manifests and as a Helm chart:\n")
    for app in sorted(path.parent for path in rendered.glob("*/*/[a-z]*/manifests")):
        objects = len(list((app / "manifests").glob("*.yaml"))) - 1
        print(f"  {app}  ({objects} objects)")
    print(
        f"""
Where to look:

  {DEMO}/kaigen.yaml               three environments on two clusters, for Argo CD and Flux
  {DEMO}/specs/finetune-job.yaml   a resource of AI Operator, as its README has it
  {DEMO}/specs/qwen.yaml           the same work said in kaigen's kinds: the weights …
  {DEMO}/specs/finetune.yaml       … and the training that waits for them
  {rendered}/dev/ml-dev/finetune/manifests/job.yaml
                                        the gate (an init container), the hash in the name, the hardened pod
  {rendered}/dev/ml-dev/finetune/chart/values.yaml
                                        every setting, with a comment
  {rendered}/prod/_argocd/apps/_project.ml-prod.yaml
                                        what Argo CD may do for these apps, and no more
  {rendered}/prod/_flux/apps/ml-prod.finetune.yaml
                                        the same for Flux: what it waits for, and how long

What to try, in {DEMO}:

  . .venv/bin/activate && cd {DEMO}
  kaigen validate                       every problem, with its place
  sed -i.bak 's/memory: 24Gi/memory: 32Gi/' specs/finetune.yaml
  kaigen diff                           what that does: a new run, and why
  kaigen render --check                 the tree is stale now: exit code 1
  kaigen render                         write it; git diff shows the lines
  kaigen graph --env prod               what depends on what, as Mermaid
  kaigen secrets --env prod             the Secrets that the apps expect
  kaigen plan --preset phi-4            on which GPUs a model runs, with the sum
  kaigen explain Job.spec.output        what a field means
  kaigen init ../my-repository          start your own
"""
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
