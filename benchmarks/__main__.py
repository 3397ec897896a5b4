"""`python -m benchmarks`: compare the speed of kaigen with its peers and print tables."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.cases import CASES
from benchmarks.command import CommandFailed
from benchmarks.objects import NotTheSame
from benchmarks.peers import PEERS
from benchmarks.profile import profile
from benchmarks.report import as_data, as_text
from benchmarks.results import Table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Returns:
        0 if the benchmark finished, whatever it measured; 1 if kaigen failed.
    """
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="kaigen-bench-") as scratch:
        try:
            bench = Bench(Path(scratch), options.runs, options.specs, () if options.profile else options.peers)
            if options.profile:
                for text in profile(bench):
                    print(text, flush=True)
                return 0
            tables = _measure(bench, options.only)
        except (CommandFailed, NotTheSame) as error:
            print(f"the benchmark failed: {error}", file=sys.stderr)
            return 1
    if options.json is not None:
        options.json.write_text(json.dumps(as_data(tables), indent=2) + "\n")
    return 0


def _measure(bench: Bench, only: Sequence[str]) -> list[Table]:
    tables = []
    for name in only:
        for table in CASES[name](bench):
            print(as_text(table), flush=True)
            tables.append(table)
    return tables


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("--only", nargs="+", choices=list(CASES), default=list(CASES), metavar="CASE", help=", ".join(CASES))
    add("--runs", type=_count, default=5, metavar="N", help="rounds of each case (default: 5)")
    add(
        "--specs", type=_sizes, default=[100, 1000], metavar="N,…", help="sizes of the repositories (default: 100,1000)"
    )
    add(
        "--peers",
        type=_peers,
        default=list(PEERS),
        metavar="PEER,…",
        help=f"peers to compare kaigen with: {', '.join(PEERS)}, or none (default: all)",
    )
    add("--json", type=Path, metavar="FILE", help="also write every number to FILE")
    add("--profile", action="store_true", help="profile kaigen instead: its imports and the steps of a render")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def _sizes(text: str) -> list[int]:
    return sorted({_count(part) for part in text.split(",")})


def _peers(text: str) -> list[str]:
    names = [] if text == "none" else text.split(",")
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no such peer: {', '.join(unknown)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
