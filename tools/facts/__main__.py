"""Make tables of kaigen/catalog from the packages that tools/facts/sources.json pins.

    python -m tools.facts             write the tables
    python -m tools.facts --newer     print what newer packages would change
    python -m tools.facts --update    pin the newest packages, and write the tables

Packages come from the registries that pip and Go use, and are kept in the user's cache. The same packages give the
same bytes.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from typing import Any

from tools.facts import configs, controllers, machines, prices, recipes, sources, vllm_table


def rendered_lines() -> list[list[str]]:
    """Return the arguments of vLLM in everything that kaigen renders for presets and examples."""
    from tests.rendered_flags import command_lines

    return [list(line) for line in command_lines()]


def newest(lock: dict[str, Any]) -> dict[str, Any]:
    """Return the lock with the newest packages; those that are not pinned yet have no hash."""
    modules = {}
    for module, pinned in lock["modules"].items():
        version = newest_version(module, pinned[0])
        modules[module] = pinned if version == pinned[0] else [version, ""]
    versions = {version: lock["vllm"].get(version, "") for version in sources.newest_vllm()}
    by_name = {name: newest_controller(pinned) for name, pinned in lock["controllers"].items()}
    wheels = {}
    for package, pinned in lock["wheels"].items():
        version = sources.versions_of(package)[0]
        wheels[package] = pinned if version == pinned[0] else [version, ""]
    return {"vllm": versions, "wheels": wheels, "modules": modules, "controllers": by_name}


def newest_version(module: str, pinned: str) -> str:
    """Return the newest version of a Go module; the pinned one where the proxy does not list it, or only older ones."""
    try:
        return sources.newest_of([pinned, *sources.module_versions(module)])
    except sources.SourceError as error:
        print(f"{module} stays at {pinned}: its versions are not listed: {error}", file=sys.stderr)
        return pinned


def newest_controller(versions: dict[str, Any]) -> dict[str, Any]:
    """Return the pinned versions of a controller with the newest one, in place of an older one of its minor version."""
    last = list(versions)[-1]
    if len(versions[last]) > 1:  # a distribution of several controllers, such as Flux, has a version of its own
        return versions
    ((module, (pinned, _)),) = versions[last].items()
    version = newest_version(module, pinned)
    if version == pinned:
        return versions
    minor = version[1:].rpartition(".")[0]
    older = {name: each for name, each in versions.items() if name.rpartition(".")[0] != minor}
    return older | {version[1:]: {module: [version, ""]}}


def make(lock: dict[str, Any]) -> dict[Any, str]:
    """Return the content of each table by its path, and put the hashes of packages into the lock."""
    folders, rows = {}, {}
    for version, sha256 in lock["vllm"].items():
        folders[version], lock["vllm"][version] = sources.vllm_files(version, sha256)
        rows[version] = vllm_table.read_flags(folders[version])
    modules = {}
    for module, (version, checksum) in lock["modules"].items():
        archive, found = sources.module_archive(module, version, checksum)
        lock["modules"][module] = [version, found]
        modules[module] = archive, version
    wheels = {}
    for package, (version, sha256) in lock["wheels"].items():
        path, found = sources.wheel(package, version, sha256)
        lock["wheels"][package] = [version, found]
        wheels[package] = path, version
    by_name: dict[str, dict[str, list[controllers.Archive]]] = {}
    for name, versions in lock["controllers"].items():
        for version, pinned in versions.items():
            archives = by_name.setdefault(name, {}).setdefault(version, [])
            for module, (module_version, checksum) in pinned.items():
                archive, pinned[module][1] = sources.module_archive(module, module_version, checksum)
                archives.append((archive, module_version, sources.module_date(archive)))
    last = list(folders)[-1]
    return {
        controllers.TABLE: controllers.table(by_name),
        vllm_table.TABLE: vllm_table.table(folders, rows),
        prices.TABLE: prices.table(modules),
        machines.TABLE: machines.table(wheels),
        configs.TABLE: configs.table(*wheels[configs.PACKAGE]),
        recipes.TABLE: recipes.table(folders[last], last),
    }


def main() -> int:
    """Write the tables, or print what changes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--newer", action="store_true", help="print what newer packages would change")
    choice.add_argument("--update", action="store_true", help="pin the newest packages, and write the tables")
    options = parser.parse_args()
    lock = sources.read_lock()
    try:
        if options.newer or options.update:
            lock = newest(lock)
        tables = make(lock)
    except sources.SourceError as error:
        print(error, file=sys.stderr)
        return 3
    for path, content in tables.items():
        old = path.read_text() if path.is_file() else ""
        if options.newer:
            sys.stdout.writelines(
                difflib.unified_diff(old.splitlines(True), content.splitlines(True), "now", path.name, n=0)
            )
        else:
            path.write_text(content)
            print(f"{path.name}: {len(content) / 1000:.0f} kB, {'same' if old == content else 'changed'}")
    if options.newer:
        return 0
    if options.update:
        sources.LOCK.write_text(json.dumps(lock, indent=1) + "\n")
    # kaigen renders by the table that was just written.
    folder, _ = sources.vllm_files(list(lock["vllm"])[-1])
    refused = vllm_table.refused_lines(folder, rendered_lines())
    for line, why in refused.items():
        print(f"the newest vLLM refuses: {why}: {line}", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    raise SystemExit(main())
