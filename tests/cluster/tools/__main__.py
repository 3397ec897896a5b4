"""Build the programs that are missing, and print where all are.

    python -m tests.cluster.tools [all | NAME ...]

Without an argument those that `make test-cluster` needs, with `all` also those of `make test-engine`, with names only
these components.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.cluster.tools import debian
from tests.cluster.tools.build import BuildFailed, ensure
from tests.cluster.tools.parts import ALL_PARTS, CLUSTER_PARTS, ToolsMissing


def main(names: Sequence[str]) -> None:
    """Build the components with these names."""
    known = {part.name: part for part in ALL_PARTS}
    unknown = [name for name in names if name not in known and names != ["all"]]
    if unknown:
        raise BuildFailed(f"no component {unknown[0]!r}; there are {', '.join(sorted(known))}")
    if names and names != ["all"]:
        ensure([known[name] for name in names])
        return
    ensure(ALL_PARTS if names else CLUSTER_PARTS)
    debian.install()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ToolsMissing, BuildFailed) as error:
        sys.exit(f"cluster-tools: {error}")
