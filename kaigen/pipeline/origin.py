"""Whether what syncers read of an output folder is what kaigen wrote."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.files import walk
from kaigen.git.attributes import ATTRIBUTES_NAME, conversions, index_has_attributes
from kaigen.output.foreign import MOST, checkout_top, foreign_diagnostics
from kaigen.output.root import NOT_SEPARATE

if TYPE_CHECKING:
    from kaigen.config.settings import Config


def origin_diagnostics(root: Path, trees: Collection[str], config: Config, inside: Path | None) -> list[Diagnostic]:
    """Return an error for each file that kaigen did not write (KG0607), and for each that Git converts (KG0608).

    Args:
        root: the output folder of all environments; need not exist.
        trees: names of the folders in it that kaigen renders into, empty for the output folder itself.
        config: the repository's settings.
        inside: the repository that must contain the folder; None for a folder that the user named.
    """
    found = foreign_diagnostics(root, trees, config.allow.files, inside)
    if inside is not None and root.is_dir() and not any(each.code == NOT_SEPARATE for each in found):
        found += _converted(root, inside)
    return found


def _converted(root: Path, inside: Path) -> Iterator[Diagnostic]:
    """Yield an error for each file of the output that Git converts, up to `MOST` files."""
    top, place = checkout_top(inside), Path(os.path.abspath(root))
    above = [folder for folder in place.parents if folder.is_relative_to(top)]
    files = [os.path.relpath(os.path.join(folder, name), place) for folder, _, names in walk(place) for name in names]
    has_attributes = (
        any(os.path.lexists(folder / ATTRIBUTES_NAME) for folder in above)
        or any(os.path.basename(path) == ATTRIBUTES_NAME for path in files)
        or index_has_attributes(top)
    )
    if not has_attributes or not os.path.lexists(top / ".git"):
        return
    converted = conversions(place, sorted(files))
    for path in sorted(converted)[:MOST]:
        yield Diagnostic(
            "KG0608",
            f"Git converts this file at checkout (attribute `{converted[path]}`), so the commit has other bytes",
            Mark(f"{root}/{path}".encode(errors="replace").decode()),
            f"remove the attribute from {ATTRIBUTES_NAME} for the output folder",
        )
    if len(converted) > MOST:
        message = f"Git converts {len(converted) - MOST} more files at checkout"
        yield Diagnostic("KG0608", message, Mark(str(root)), f"remove the attributes from {ATTRIBUTES_NAME}")
