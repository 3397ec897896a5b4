"""Make kaigen/catalog/prices.json: the list prices of instance types with GPUs that Karpenter's providers contain."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
TABLE = ROOT / "kaigen" / "catalog" / "prices.json"
INSTANCES = ROOT / "kaigen" / "catalog" / "instances.json"
AWS, AZURE = "github.com/aws/karpenter-provider-aws", "github.com/Azure/karpenter-provider-azure"
_FILES = {
    AWS: ("aws", "us-east-1", "zz_generated.pricing_aws.go", r'\n\t"{}": \{{(.*?)\n\t\}},'),
    AZURE: ("azure", "eastus", "zz_generated.pricing.go", r'initialOnDemandPrices\["{}"\] = .*?\{{(.*?)\n\t\}}'),
}
"""The cloud, the region, the file, and the pattern of a region's prices in it, by module."""
_PRICE = re.compile(r'"([A-Za-z0-9_.-]+)":\s+([0-9.]+)')


def prices_in(text: str, region: str, pattern: str) -> dict[str, float]:
    """Return the price of an hour in USD by instance type, from the source of a provider."""
    found = re.search(pattern.format(re.escape(region)), text, re.DOTALL)
    return {name: float(price) for name, price in _PRICE.findall(found[1])} if found else {}


def table(archives: Mapping[str, tuple[Path, str]]) -> str:
    """Return the content of the table.

    Args:
        archives: archive and version of each module.
    """
    names = {row["name"] for row in json.loads(INSTANCES.read_text())["instances"]}
    clouds: dict[str, Any] = {}
    for module, (cloud, region, name, pattern) in _FILES.items():
        path, version = archives[module]
        with zipfile.ZipFile(path) as archive:
            text = archive.read(f"{module}@{version}/pkg/providers/pricing/{name}").decode()
        made = re.search(r"generated at (\d{4}-\d{2}-\d{2})", text)
        found = prices_in(text, region, pattern)
        clouds[cloud] = {
            "source": f"{module} {version}, pkg/providers/pricing/{name}",
            "date": made[1] if made else "",
            "region": region,
            "usdPerHour": {name: found[name] for name in sorted(names & found.keys())},
        }
    return json.dumps({"clouds": clouds}, indent=1) + "\n"
