"""The spec field behind each setting and note: `kaigen graph` and diagnostics point to its line."""

from __future__ import annotations

from tests.cases import cases
from tests.goldens import Goldens


def test_settings_and_notes_name_their_spec_field(golden: Goldens) -> None:
    lines = []
    for case in cases().values():
        if case.config.environment:
            continue  # the same specs as without an environment
        for item in case.compile().apps:
            lines.append(f"{case.name}/{item.app.name}\n")
            for setting in item.app.settings:
                origin = ".".join(map(str, setting.origin)) if setting.origin else "-"
                lines.append(f"  {setting.path}: {origin}\n")
            lines += [f"  note: {'.'.join(map(str, note.path)) or '-'}\n" for note in item.app.notes]
    golden.check("setting_origins.txt", "".join(lines))
