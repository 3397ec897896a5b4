"""What every written file has in common: where it goes, and the header that says whose it is."""

from __future__ import annotations

from kaigen.compile.app import App


def app_folder(app: App) -> str:
    """Folder of the app in the output tree."""
    return f"{app.namespace}/{app.name}"


def header(app: App) -> str:
    """First line of a file that kaigen writes."""
    origin = f" from {app.source}" if app.source else ""
    return f"# Rendered by kaigen{origin}. Change the spec, not this file.\n"
