"""A real browser, Debian's Chromium, and the Mermaid that code hosts draw flowcharts with."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.tools.debian import install
from tests.cluster.tools.parts import ToolsMissing, cache

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

MERMAID = "11.17.2"
_INTEGRITY = "sha512-V6K3C8EBdEsPFZXSKMJe6ppQOENxuHARr9GvHX4hh47lAbhMRD9qf4oEK7LoaRQxULMa80/qt5gHO73aCleBBg=="
"""Of the package, as a lock file of npm names it."""


@contextmanager
def browser(*, dark: bool = False) -> Iterator[Chrome]:
    """A running browser without a window, that notes what its pages say and ask for; it ends with the block.

    Args:
        dark: the reader's system is dark.
    """
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    install("chromium", "chromedriver")
    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    # A container's root has no sandbox to give up, and its /dev/shm may be small.
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "window-size=1500,950"):
        options.add_argument(f"--{argument}")
    if dark:
        options.add_argument("--blink-settings=preferredColorScheme=0")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
    try:
        yield running
    finally:
        running.quit()


def complaints(chrome: Chrome) -> list[str]:
    """Return what pages wrote to the console since the last call."""
    return _log(chrome, "browser")


def requests(chrome: Chrome) -> list[str]:
    """Return what pages requested since the last call, without the pages themselves."""
    messages = [json.loads(entry)["message"] for entry in _log(chrome, "performance")]
    asked = [each["params"] for each in messages if each["method"] == "Network.requestWillBeSent"]
    return [each["request"]["url"] for each in asked if each["request"]["url"] != each["documentURL"]]


def _log(chrome: Chrome, name: str) -> list[str]:
    return [entry["message"] for entry in chrome.get_log(name)]  # type: ignore[no-untyped-call]


def mermaid_script() -> Path:
    """Return the path of Mermaid as one script for browsers, cached with the other tools.

    Raises:
        ToolsMissing: the package is not the pinned one.
    """
    target = cache() / f"mermaid-{MERMAID}.min.js"
    if target.exists():
        return target
    install("npm")
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache(), prefix=".mermaid-") as scratch:
        command = ["npm", "pack", f"mermaid@{MERMAID}", "--silent", "--pack-destination", scratch]
        subprocess.run(command, cwd=scratch, check=True, capture_output=True)
        (packed,) = Path(scratch).glob("*.tgz")
        found = "sha512-" + base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
        if found != _INTEGRITY:
            raise ToolsMissing(f"mermaid {MERMAID} has the integrity {found}, not {_INTEGRITY}")
        with tarfile.open(packed) as archive:
            script = archive.extractfile("package/dist/mermaid.min.js")
            assert script is not None
            part = Path(scratch) / target.name
            part.write_bytes(script.read())
        part.replace(target)
    return target
