"""Versions of engines in the tags of images."""

from __future__ import annotations

import pytest

from kaigen.catalog.engines import Version, tag_version


@pytest.mark.parametrize(
    ("reference", "version"),
    [
        ("vllm/vllm-openai:v0.33.0", (0, 33, 0)),
        ("registry.example.com:5000/vllm/vllm-openai:v0.33.0@sha256:00", (0, 33, 0)),
        ("vllm/vllm-openai:v0.8.5.post1", (0, 8, 5)),
        ("vllm/vllm-openai:v0.11.0rc1", (0, 11, 0)),
        ("vllm/vllm-openai:v0.10.1.1", (0, 10, 1)),
        ("vllm/vllm-openai:v0.11.0-x86_64", (0, 11, 0)),
        ("vllm/vllm-openai:0.11", (0, 11)),
        ("rocm/vllm:rocm6.4.1_vllm_0.10.0_20250812", (0, 10, 0)),
        ("rocm/vllm:rocm6.3.1_instinct_vllm0.8.3_20250415", (0, 8, 3)),
        ("acme/server:vllm-v0.9.1-cu128", (0, 9, 1)),
        ("public.ecr.aws/deep-learning-containers/vllm:0.10.2-gpu-py312-cu128-ubuntu22.04-ec2", (0, 10, 2)),
        ("nvcr.io/nvidia/vllm:25.09-py3", None),
        ("nvcr.io/nvidia/vllm:25.12.post1-py3", None),
        ("vllm/vllm-openai:latest", None),
        ("vllm/vllm-openai:nightly-0123abc", None),
        ("vllm/vllm-openai:cu130-nightly", None),
        ("acme/vllm:1", None),
        ("acme/vllm:0.1.2.3.4", None),
        ("localhost:5000/vllm", None),
        ("acme/vllm", None),
    ],
)
def test_the_version_in_a_tag(reference: str, version: Version | None) -> None:
    assert tag_version(reference) == version
