"""One module a form of report. Each has `render(diagnostics, *, color, files) -> str`."""
