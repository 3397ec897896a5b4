"""The folder and the header of every rendered file."""

from __future__ import annotations

from kaigen.compile.app import App


def app_folder(app: App) -> str:
    """Return the folder of an app in the output tree."""
    return f"{app.namespace}/{app.name}"


def shown_source(app: App) -> str:
    """Return the name of the spec's file, safe for one line of YAML or Markdown."""
    return "".join(char if char.isprintable() and char != "`" else "?" for char in app.source)


def header(app: App) -> str:
    """Return the first line of a rendered file."""
    origin = f" from {shown_source(app)}" if app.source else ""
    return f"# Rendered by kaigen{origin}. Change the spec, not this file.\n"
