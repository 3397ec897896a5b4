"""Make kaigen/kubernetes/data from the Kubernetes schemas and the CustomResourceDefinitions.

Run it by hand for a new Kubernetes version or CRD:

    python tools/make_schemas.py [--crds FOLDER]

Core schemas come from the installed package kubernetes-validate, rules they lack from tools/core_rules.yaml, and custom
resources from the *.yaml files of FOLDER (one CustomResourceDefinition per file; its first line is a comment that names
the source). The same sources give the same bytes. kaigen/kubernetes/schemas.py describes the format of the data.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script finds its own folder only

from tools.schemas.core import make_core  # noqa: E402
from tools.schemas.crds import make_crds  # noqa: E402
from tools.schemas.files import Files, Schema, dump_index, sha256  # noqa: E402

DATA = ROOT / "kaigen" / "kubernetes" / "data"
RULES = ROOT / "tools" / "core_rules.yaml"
CRDS = ROOT / "tests" / "cluster" / "crds"
TARGETS = ("1.33", "1.34", "1.35", "1.36", "1.37")


def main() -> int:
    """Write the data files and return the exit code."""
    parser = argparse.ArgumentParser(description="Make kaigen/kubernetes/data from its sources.")
    parser.add_argument("--crds", type=Path, default=CRDS, help="folder of CustomResourceDefinitions")
    parser.add_argument("--out", type=Path, default=DATA, help="folder to write to")
    options = parser.parse_args()
    files = make_all(options.crds)
    options.out.mkdir(parents=True, exist_ok=True)
    for old in options.out.glob("*.json"):
        if old.name not in files:
            old.unlink()
    for name, content in files.items():
        (options.out / name).write_bytes(content)
    print(f"{len(files)} files, {sum(map(len, files.values())) / 1024:.0f} KiB in {options.out}")
    return 0


def make_all(crds: Path) -> Files:
    """Return every data file by name: the shards, the index, and a manifest with the hashes of sources and files."""
    core_shards, core_kinds = make_core(TARGETS, RULES)
    crd_shards, crd_kinds, crd_sources = make_crds(crds)
    index = {"targets": TARGETS, "kinds": merge_kinds(core_kinds, crd_kinds)}
    files = {**core_shards, **crd_shards, "index.json": dump_index(index)}
    manifest = {
        "sources": {
            "kubernetes-validate": {"version": importlib.metadata.version("kubernetes-validate")},
            "tools/core_rules.yaml": {"sha256": sha256(RULES.read_bytes())},
            **crd_sources,
        },
        "files": {name: sha256(content) for name, content in sorted(files.items())},
    }
    files["manifest.json"] = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
    return files


def merge_kinds(*tables: dict[str, Schema]) -> dict[str, dict[str, Schema]]:
    """Return entries by kind and apiVersion, because both lookup and hints start from the kind."""
    kinds: dict[str, dict[str, Schema]] = defaultdict(dict)
    for table in tables:
        for name, entry in table.items():
            version, _, kind = name.rpartition("/")
            kinds[kind][version] = entry
    return kinds


if __name__ == "__main__":
    sys.exit(main())
