"""What engines on Hugging Face's libraries share."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.engines.launch import Launch

MODEL_SERVER_HINTS: Mapping[str, str] = dict.fromkeys(
    ("command", "args"), "use `engineArgs` for further flags, or `engine: container`"
)
"""Hints by fields that only a container without an engine of kaigen's understands."""


def hub_environment(launch: Launch) -> dict[str, str]:
    """Return the folders that the libraries write to, and their switches.

    A user id that is not in the image has no name, which PyTorch's compiler requires.
    """
    cache = launch.folders.cache
    variables = {"HOME": cache, "USER": "kaigen", "HF_HOME": f"{cache}/huggingface", "HF_HUB_DISABLE_TELEMETRY": "1"}
    return variables | ({"HF_HUB_OFFLINE": "1"} if launch.weights.offline else {})
