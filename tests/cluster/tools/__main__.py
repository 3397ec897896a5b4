"""``python -m tests.cluster.tools``: builds the programs that are missing, prints where all are."""

from __future__ import annotations

import sys

from tests.cluster.tools import debian
from tests.cluster.tools.build import BuildFailed, ensure
from tests.cluster.tools.parts import ToolsMissing

if __name__ == "__main__":
    try:
        ensure()
        debian.install()
    except (ToolsMissing, BuildFailed) as error:
        sys.exit(f"cluster-tools: {error}")
