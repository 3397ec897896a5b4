"""Images, resources and places."""

from __future__ import annotations

from tests.unit.diff.diff_cases import container, deployment, template, with_
from tests.unit.diff.rule_cases.objects import Case, gpu

WEB = deployment(replicas=2)
RUN = "spec/template/spec/containers/0"

CASES: list[Case] = [
    Case(
        "resources",
        "a share of a GPU",
        gpu(0, "nvidia.com/gpumem"),
        gpu(3000, "nvidia.com/gpumem"),
        [("notice", "share of a GPU of run: from 0 to 3000 (nvidia.com/gpumem)")],
    ),
    Case("resources", "more GPUs", gpu(1), gpu(2), [("notice", "GPUs of run: from 1 to 2 (nvidia.com/gpu)")]),
    Case(
        "resources",
        "slices instead of GPUs",
        gpu(1),
        gpu(1, "nvidia.com/mig-1g.10gb"),
        [
            ("notice", "GPUs of run: from 1 to 0 (nvidia.com/gpu)"),
            ("notice", "GPU slices of run: from 0 to 1 (nvidia.com/mig-1g.10gb)"),
        ],
    ),
    Case(
        "resources",
        "more memory and no CPU limit",
        deployment(pod=template(container(resources={"limits": {"memory": "1Gi", "cpu": 1}}))),
        deployment(pod=template(container(resources={"limits": {"memory": "2Gi"}}))),
        [("info", "CPU limit of run: from 1 to none"), ("info", "memory limit of run: from 1Gi to 2Gi")],
    ),
    Case(
        "resources",
        "the same in other words",
        deployment(pod=template(container(resources={"limits": {"cpu": 1}}))),
        deployment(pod=template(container(resources={"limits": {"cpu": "1000m"}}))),
        [],
    ),
    Case(
        "placement",
        "other GPUs",
        deployment(pod=template(nodeSelector={"nvidia.com/gpu.product": "NVIDIA-L4"})),
        deployment(pod=template(nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100"}, runtimeClassName="nvidia")),
        [
            ("notice", "runs on nodes with nvidia.com/gpu.product: NVIDIA-H100 instead of NVIDIA-L4"),
            ("notice", "runtime class: nvidia from now on"),
        ],
    ),
    Case(
        "placement",
        "no selector, other claims",
        deployment(pod=template(nodeSelector={"a": "b"})),
        deployment(pod=template(resourceClaims=[{"name": "gpu"}])),
        [
            ("notice", "runs on nodes with a: b no longer required"),
            ("notice", "requests other devices (resource claims gpu instead of none)"),
        ],
    ),
    Case(
        "image",
        "another tag",
        with_(WEB, f"{RUN}/image", "reg:5000/a/b:v1"),
        with_(WEB, f"{RUN}/image", "reg:5000/a/b:v2@sha256:" + "c" * 64),
        [("info", "image of run: reg:5000/a/b from v1 to v2 sha256:cccccccccccc…")],
    ),
    Case(
        "image",
        "another image",
        with_(WEB, f"{RUN}/image", "a:1"),
        with_(WEB, f"{RUN}/image", "b"),
        [("info", "image of run: from a:1 to b")],
    ),
    Case(
        "image-digest",
        "a tag",
        WEB,
        with_(WEB, f"{RUN}/image", "a:1"),
        [("info", "no digest: a:1 may change without a commit")],
    ),
    Case("image-digest", "a digest", None, WEB, []),
]
