"""What `kaigen job` and `egpu` differ in: names, defaults and a few options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Flavor(Struct, frozen=True):
    """Names and defaults of a family of commands.

    Attributes:
        program: what the user types.
        job_prefix: beginning of the names of Jobs.
        label: a label of the Jobs' pods, as `KEY=VALUE`: Jobs without it are not listed; empty for none.
        name_label: key of a label with the name of the app; empty for none.
        namespace: default namespace; empty for that of the context.
        lists_all: whether lists have the Jobs of all namespaces.
        storage_class: default StorageClass; None for that of the profile.
        ttl: default lifetime of finished pods; empty to keep them.
        pvc_ttl: default lifetime of the volume after the run; empty to keep it.
        gpu: default number of GPUs.
        keeps_pvc: whether `delete` keeps the volume.
        debug_mount: where debug pods mount the volume; empty for where the Job does.
        replaced_image: the image in place of which kaigen's own classifies; empty for none.
        command: what another image runs without `--command`, with the arguments `--model`, `--input` and `--output`;
            empty for the image's own entry point, with the arguments of kaigen's image.
    """

    program: str
    job_prefix: str = ""
    label: str = ""
    name_label: str = ""
    namespace: str = ""
    lists_all: bool = False
    storage_class: str | None = None
    ttl: str = ""
    pvc_ttl: str = ""
    gpu: int = 0
    keeps_pvc: bool = False
    debug_mount: str = ""
    replaced_image: str = ""
    command: tuple[str, ...] = ()

    def job(self, name: str) -> str:
        """Return the name of the Job that is created for a name."""
        return f"{self.job_prefix}{name}"

    def lists(self, job: Mapping[str, Any]) -> bool:
        """Return whether a Job is one of the family: those in Git have the label on their pods only."""
        key, _, value = self.label.partition("=")
        labels = job["spec"]["template"]["metadata"].get("labels") or {}
        return not key or labels.get(key) == value

    def labels(self, name: str) -> Mapping[str, str]:
        """Return the further labels of a Job and its pods."""
        key, _, value = self.label.partition("=")
        return {**({key: value} if key else {}), **({self.name_label: name} if self.name_label else {})}


KAIGEN = Flavor(program="kaigen job")
EGPU = Flavor(
    program="egpu",
    job_prefix="ephemeralaccelerationjob-",
    label="app=gpu-job",
    name_label="ephemeralaccelerationjob",
    namespace="default",
    lists_all=True,
    storage_class="longhorn",
    ttl="0",
    pvc_ttl="3600",
    gpu=1,
    keeps_pvc=True,
    debug_mount="/mnt",
    replaced_image="gpu-job-inference:latest",
    command=("python", "-m", "job_image_infer.run_infer"),
)
"""Names and defaults of the Ephemeral GPU operator's own command (source: its README and src/cli/main.py).

Image and command are those of the dialect; importing it here would make every command slower, so a test compares them.
"""
