"""A new GitOps repository: templates in `files/`, rendered and written all or none."""

from __future__ import annotations

import json
import re
from pathlib import Path

from kaigen import __version__
from kaigen.catalog.images import default_images
from kaigen.catalog.profiles import profile_names
from kaigen.config.file import CONFIG_ENTRY
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.errors import InputError, SystemFailure
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.registry import KINDS
from kaigen.kinds.base import DNS_LABEL
from kaigen.kinds.schema import combined_schema, json_schema

FILES = Path(__file__).parent / "files"

TARGETS = {
    "kaigen.yaml": "kaigen.yaml",
    "model.yaml": "specs/qwen.yaml",
    "job.yaml": "specs/evaluate.yaml",
    "workflow.yaml": ".github/workflows/kaigen.yaml",
    "pre-commit.yaml": ".pre-commit-config.yaml",
    "vscode.json": ".vscode/settings.json",
    "gitignore": ".gitignore",
    "README.md": "README.md",
}
"""Templates and the paths of their output."""


def repository_files(*, profile: str = "generic", namespace: str = "ml") -> dict[str, str]:
    """Return the content of every file of a new repository by path.

    Raises:
        InputError: for a profile or namespace that cannot be.
    """
    found = []
    if profile not in profile_names():
        hint = did_you_mean(profile, profile_names()) or "known: " + ", ".join(profile_names())
        found.append(Diagnostic("KG0703", f"unknown `profile` `{profile}`", hint=hint))
    if not re.fullmatch(DNS_LABEL, namespace) or len(namespace) > 63:
        hint = "use lower-case letters, digits and dashes, at most 63 characters"
        found.append(Diagnostic("KG0703", f"`{namespace}` cannot be a namespace", hint=hint))
    if found:
        raise InputError(found)
    words = {"profile": profile, "namespace": namespace, "tag": f"v{__version__}", **default_images()}
    files = {}
    for name, target in TARGETS.items():
        text = (FILES / name).read_text(encoding="utf-8")
        files[target] = re.sub(r"@([a-z]+)@", lambda match: words[match[1]], text)
    schemas = {
        ".kaigen/schema.json": combined_schema(KINDS, embedded=True),
        ".kaigen/config.json": json_schema(CONFIG_ENTRY),
    }
    for target, schema in schemas.items():
        files[target] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    return dict(sorted(files.items()))


def start_repository(root: Path, *, profile: str = "generic", namespace: str = "ml") -> list[str]:
    """Write a new repository's files.

    Returns:
        Their paths below `root`.

    Raises:
        InputError: when one of them exists; nothing is written then.
    """
    files = repository_files(profile=profile, namespace=namespace)
    if root.exists() and not root.is_dir():
        raise InputError.of("KG0606", f"{root} is not a folder")
    there = [path for path in files if (root / path).exists() or (root / path).is_symlink()]
    if there:
        hint = "run it in a new folder, or move the file away"
        raise InputError(
            [Diagnostic("KG0606", "is there already", Mark(str(root / path)), hint) for path in there]
        )
    written: list[str] = []
    try:
        for path, text in files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")
            written.append(path)
    except OSError as error:
        for path in written:
            (root / path).unlink(missing_ok=True)
        raise SystemFailure(f"{error.filename}: {error.strerror}") from error
    return written
