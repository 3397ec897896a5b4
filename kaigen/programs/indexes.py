"""Loads all indexes of KAITO's RAG server from its volume, or writes them back: `indexes.py load|persist`.

A failing hook would stop the container, so errors are only printed.
"""

import json
import os
import sys
import time
import urllib.request

BASE = "http://127.0.0.1:5000"


def ask(path: str, method: str = "GET") -> bytes:
    """Return the server's answer."""
    with urllib.request.urlopen(urllib.request.Request(BASE + path, method=method), timeout=50) as answer:
        body: bytes = answer.read()
    return body


def names(action: str, folder: str) -> list[str]:
    """Return the names of the indexes that the server has, or those of the volume once the server answers."""
    if action == "persist":
        known: list[str] = json.loads(ask("/indexes"))
        return known
    for _ in range(120):
        try:
            ask("/health")
            break
        except OSError:
            time.sleep(1)
    return [name for name in os.listdir(folder) if os.path.exists(f"{folder}/{name}/docstore.json")]


def main(action: str, folder: str) -> None:
    """Load all indexes from a folder, or write them back."""
    try:
        for name in names(action, folder):
            ask(f"/{action}/{name}?path={folder}/{name}" + "&overwrite=true" * (action == "load"), "POST")
    except (OSError, ValueError) as problem:
        print(action, problem, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], os.environ["DEFAULT_VECTOR_DB_PERSIST_DIR"])
