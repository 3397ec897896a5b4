"""Downloads training data: `fetch_data.py FOLDER URL...`."""

import os
import shutil
import sys
import urllib.parse
import urllib.request


def main(folder: str, urls: list[str]) -> None:
    """Download files into a folder, each under its own name."""
    for number, url in enumerate(urls):
        name = os.path.basename(urllib.parse.unquote(urllib.parse.urlsplit(url).path)) or f"data-{number}"
        target = os.path.join(folder, name)
        with urllib.request.urlopen(url, timeout=60) as answer, open(target + ".part", "wb") as file:
            shutil.copyfileobj(answer, file, 1 << 20)
        os.replace(target + ".part", target)
        print(f"{url}: {os.path.getsize(target)} bytes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
