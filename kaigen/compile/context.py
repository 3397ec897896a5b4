"""What a compile step may know beside the spec itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kaigen.catalog.profiles import Profile


@dataclass(frozen=True, slots=True)
class Context:
    """The surroundings that a spec is compiled for.

    Attributes:
        profile: what kind of cluster.
        namespace: where apps go whose spec names none.
        target: Kubernetes version, as in `1.36`.
        images: kaigen's own runtime images by name.
        specs: every spec of the run by (kind, namespace, name), for references between them.
    """

    profile: Profile
    namespace: str = "default"
    target: str = "1.36"
    images: Mapping[str, str] = field(default_factory=dict)
    specs: Mapping[tuple[str, str, str], Any] = field(default_factory=dict)
