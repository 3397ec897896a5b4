"""Make kaigen/catalog/machines.json: processors and memory of instance types with GPUs.

moto has EC2's answer to DescribeInstanceTypes, and NVIDIA's tools for Spark have what the command lines of Azure and
Google Cloud list.
"""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tools.facts.prices import INSTANCES, ROOT

TABLE = ROOT / "kaigen" / "catalog" / "machines.json"
MOTO, SPARK = "moto", "spark-rapids-user-tools"
_SPARK = "spark_rapids_pytools/resources/{}-instance-catalog.json"
_FILES = {
    "aws": (MOTO, "moto/ec2/resources/instance_types.json.gz"),
    "azure": (SPARK, _SPARK.format("databricks_azure")),
    "gcp": (SPARK, _SPARK.format("dataproc")),
}
_RECORD = re.compile(r"\[[0-9,\s]+\]")


def machine_of(row: Mapping[str, Any]) -> list[int]:
    """Return the vCPUs and the MiB of memory of a row of either package."""
    if "VCpuInfo" in row:
        return [row["VCpuInfo"]["DefaultVCpus"], row["MemoryInfo"]["SizeInMiB"]]
    return [row["VCpuCount"], row["MemoryInMB"]]


def table(wheels: Mapping[str, tuple[Path, str]]) -> str:
    """Return the content of the table.

    Args:
        wheels: wheel and version of each package.
    """
    names = {row["name"] for row in json.loads(INSTANCES.read_text())["instances"]}
    clouds: dict[str, Any] = {}
    for cloud, (package, name) in _FILES.items():
        path, version = wheels[package]
        with zipfile.ZipFile(path) as archive:
            year, month, day = archive.getinfo(name).date_time[:3]
            read: Callable[[bytes], bytes] = gzip.decompress if name.endswith(".gz") else bytes
            rows = json.loads(read(archive.read(name)))
        clouds[cloud] = {
            "source": f"{package} {version}, {name}",
            "date": f"{year}-{month:02}-{day:02}",
            "machines": {each: machine_of(rows[each]) for each in sorted(names & rows.keys())},
        }
    lines = json.dumps({"columns": ["vCPU", "memory in MiB"], "clouds": clouds}, indent=1)
    return _RECORD.sub(lambda match: "[" + " ".join(match[0][1:-1].split()) + "]", lines) + "\n"
