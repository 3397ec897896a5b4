"""`kaigen job`: Jobs that run now, on a live cluster."""

from __future__ import annotations

from kaigen.cli.live.flavor import KAIGEN
from kaigen.cli.live.group import group

command = group(
    KAIGEN,
    "job",
    "Run Jobs on a cluster, and show what they do.\n\nNeeds `pip install 'kaigen[cluster]'`. `kaigen job create` is "
    "for work that is not in Git; the other commands work with the Jobs that Argo CD or Flux synced, too.",
)
