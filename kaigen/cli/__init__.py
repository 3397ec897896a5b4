"""The command line: parsing and printing only. Each command is a module that is imported when it runs."""

from __future__ import annotations

from kaigen.cli.main import main

__all__ = ["main"]
