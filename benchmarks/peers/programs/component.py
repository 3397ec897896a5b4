"""A kadet component: every object is a file of the target."""

import json
from pathlib import Path

from kadet import BaseObj  # type: ignore[import-not-found]


def main() -> BaseObj:
    """What kapitan writes."""
    output = BaseObj()
    for name, item in json.loads(Path(__file__).with_name("objects.json").read_text()).items():
        output.root[name] = item
    return output
