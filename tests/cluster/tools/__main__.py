"""``python -m tests.cluster.tools``: builds the programs that are missing, prints where all are.

With the argument ``all``, also those that only ``make test-engine`` needs.
"""

from __future__ import annotations

import sys

from tests.cluster.tools import debian
from tests.cluster.tools.build import BuildFailed, ensure
from tests.cluster.tools.parts import ALL_PARTS, CLUSTER_PARTS, ToolsMissing

if __name__ == "__main__":
    try:
        ensure(ALL_PARTS if sys.argv[1:] == ["all"] else CLUSTER_PARTS)
        debian.install()
    except (ToolsMissing, BuildFailed) as error:
        sys.exit(f"cluster-tools: {error}")
