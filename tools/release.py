"""Build a release of a commit: wheel, sdist, chart, bills of materials and provenance, with the same bytes every time.

    python -m tools.release [--output dist] [--commit HEAD] [--key sign.key] [--gpg-key ID]

Everything is built from the files of the commit, never from the working folder, and dated by the commit. The packages
that build it are those of `requirements/build.txt`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from kaigen.images.attest import PROVENANCE as PREDICATE
from kaigen.images.attest import bill_of_packages
from kaigen.publish.artifacts import CHART_FIRST, tgz
from kaigen.signing.bundle import STATEMENT_TYPE, canonical_json, sign_statement
from kaigen.signing.keys import read_private_key

ROOT = Path(__file__).parent.parent
BUILD_TYPE = "https://kaigen.dev/release/v1"


def git(*arguments: str) -> str:
    """Return what Git prints about the repository."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def build(commit: str, output: Path, key: Path | None = None, gpg_key: str = "") -> list[Path]:
    """Build the release of a commit and return its files.

    Args:
        commit: any name of a commit.
        output: folder for the files; it must not exist or be empty.
        key: private key that signs the provenance; None for an unsigned one.
        gpg_key: GnuPG key that signs the charts, for `helm verify`; empty for unsigned ones.
    """
    commit = git("rev-parse", f"{commit}^{{commit}}")
    seconds = int(git("show", "--no-patch", "--format=%ct", commit))
    output.mkdir(parents=True, exist_ok=True)
    if any(output.iterdir()):
        raise SystemExit(f"{output} is not empty: remove it first")
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch, "kaigen")
        _export(commit, tree)
        _distributions(tree, output.absolute(), seconds)
        files = {**_charts(tree), **_bills(tree, commit, seconds)}
        for name, content in files.items():
            (output / name).write_bytes(content)
        statement = _provenance(tree, commit, output)
        if gpg_key:
            for chart in sorted(output.glob("*.tgz")):
                _sign_chart(chart, gpg_key)
    if key is None:
        (output / "provenance.intoto.json").write_bytes(canonical_json({"_type": STATEMENT_TYPE, **statement}))
    else:
        subjects, predicate = statement["subject"], statement["predicate"]
        bundle = sign_statement(read_private_key(key), PREDICATE, subjects, predicate)
        (output / "provenance.sigstore.json").write_bytes(bundle)
    return sorted(output.iterdir())


def _export(commit: str, tree: Path) -> None:
    """Write the files of a commit to a folder."""
    archive = tree.with_suffix(".tar")
    git("archive", "--format=tar", f"--output={archive}", commit)
    with tarfile.open(archive) as content:
        content.extractall(tree, filter="data")


def _distributions(tree: Path, output: Path, seconds: int) -> None:
    """Build wheel and sdist."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(output)]
    subprocess.run(command, cwd=tree, env=env, check=True, capture_output=True, umask=0o022)


def _charts(tree: Path) -> dict[str, bytes]:
    """Return the packages of the charts in `charts/`, by file name."""
    packages = {}
    for chart in sorted((tree / "charts").iterdir()):
        meta = yaml.safe_load((chart / "Chart.yaml").read_text())
        name = meta["name"]
        files = {
            f"{name}/{path.relative_to(chart).as_posix()}": path.read_bytes()
            for path in chart.rglob("*")
            if path.is_file()
        }
        first = tuple(f"{name}/{path}" for path in CHART_FIRST)
        packages[f"{name}-{meta['version']}.tgz"] = tgz(files, first=first)
    return packages


def _sign_chart(chart: Path, gpg_key: str) -> None:
    """Write the `.prov` file of a chart's package (source of the format: Helm's pkg/provenance)."""
    with tarfile.open(chart) as content:
        (meta,) = [name for name in content.getnames() if re.fullmatch(r"[^/]+/Chart\.yaml", name)]
        file = content.extractfile(meta)
        assert file is not None
        text = file.read().decode()
    message = f"{text}\n...\nfiles:\n  {chart.name}: sha256:{_digest(chart)['sha256']}\n"
    command = ["gpg", "--batch", "--yes", "--local-user", gpg_key, "--digest-algo", "SHA512", "--clearsign"]
    done = subprocess.run(command, input=message.encode(), capture_output=True, check=True)
    chart.with_name(f"{chart.name}.prov").write_bytes(done.stdout)


def _bills(tree: Path, commit: str, seconds: int) -> dict[str, bytes]:
    """Return the bill of materials of kaigen and of each runtime image, from their locks, by file name."""
    version = re.findall(r'^__version__ = "(.+)"', (tree / "kaigen" / "__init__.py").read_text(), re.M)[0]
    locks = {"kaigen": tree / "requirements" / "base.txt"}
    for folder in sorted((tree / "runtimes").iterdir()):
        locks[folder.name] = folder / "requirements.txt"
    made = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        f"{name}-{version}.cdx.json": bill_of_packages(
            name, version, lock.read_text() if lock.exists() else "", commit, made
        )
        for name, lock in locks.items()
        if lock.exists() or (lock.parent / "Dockerfile").exists()
    }


def _provenance(tree: Path, commit: str, output: Path) -> dict[str, Any]:
    """Return subjects, type and predicate of the statement about all files of the release."""
    locks = [tree / "requirements" / "build.txt"]
    inputs = [{"name": path.relative_to(tree).as_posix(), "digest": _digest(path)} for path in locks]
    origin = {"name": "kaigen", "digest": {"gitCommit": commit}}
    definition: Mapping[str, Any] = {
        "buildType": BUILD_TYPE,
        "externalParameters": {"commit": commit},
        "resolvedDependencies": [origin, *inputs],
    }
    return {
        "subject": [{"name": path.name, "digest": _digest(path)} for path in sorted(output.iterdir())],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": definition,
            "runDetails": {"builder": {"id": "https://kaigen.dev/tools/release"}},
        },
    }


def _digest(path: Path) -> dict[str, str]:
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Build a release of a commit.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--key", type=Path, help="private key that signs the provenance")
    parser.add_argument("--gpg-key", default="", help="GnuPG key that signs the charts for `helm verify`")
    options = parser.parse_args()
    for path in build(options.commit, options.output, options.key, options.gpg_key):
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")


if __name__ == "__main__":
    main()
