"""`python -m kaigen_downloader`."""

from kaigen_downloader.cli import run

run()
