"""What every written file has in common: where it goes, and the header that says whose it is."""

from __future__ import annotations

from kaigen.compile.app import App


def app_folder(app: App) -> str:
    """Folder of the app in the output tree."""
    return f"{app.namespace}/{app.name}"


def shown_source(app: App) -> str:
    """The spec's file as it may stand on one line of YAML or Markdown."""
    return "".join(char if char.isprintable() and char != "`" else "?" for char in app.source)


def header(app: App) -> str:
    """First line of a file that kaigen writes."""
    origin = f" from {shown_source(app)}" if app.source else ""
    return f"# Rendered by kaigen{origin}. Change the spec, not this file.\n"
