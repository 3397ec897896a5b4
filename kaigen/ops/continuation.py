"""What follows when a Notebook closes: the image of its local folder, and the spec that trains with it."""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from kaigen.config.settings import Config
from kaigen.contexts.artifact import pack, push, target
from kaigen.contexts.folder import find_secret_files, read_folder
from kaigen.core.text import plural
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import CheckFailed
from kaigen.diff.formatting import size_text
from kaigen.environments.builds import default_repository
from kaigen.kinds.notebook import Notebook
from kaigen.scaffold.notebook_job import Promotion, find_notebook, promotion_of, write_promotion

_DOCKERFILE = "Dockerfile"
_UNKNOWN = "sha256:" + "0" * 64


class Continuation(Struct, frozen=True):
    """How the work of a Notebook continues.

    Attributes:
        config: settings of the repository.
        name: name of the Notebook.
        filename: file with its spec; empty if it is one of the repository's specs.
        folder: local folder that the image is built from; None if the image stays that of the Notebook.
        dockerfile: path of the Dockerfile in the folder.
        repository: where the folder is pushed.
    """

    config: Config
    name: str
    filename: str
    folder: Path | None
    dockerfile: str
    repository: str

    @property
    def question(self) -> str:
        """What a user is asked."""
        return "Build the image and write a manifest?" if self.folder else "Write a manifest that trains?"

    @property
    def commands(self) -> list[str]:
        """The commands that do the same."""
        promote = ["kaigen", "notebook", "promote", self.name, *(["-f", self.filename] if self.filename else [])]
        if self.folder is None:
            return [shlex.join(promote)]
        own = [] if self.dockerfile == _DOCKERFILE else ["--dockerfile", self.dockerfile]
        first = ["kaigen", "build", "push", str(self.folder), "--to", self.repository, *own]
        return [shlex.join(first), f"{shlex.join(promote)} --artifact REFERENCE"]

    def promotion(self, artifact: str) -> Promotion:
        """Return the spec that trains, named after the Unix time as Substratus names it."""
        paths = [self.filename] if self.filename else []
        return promotion_of(self.config, self.name, paths=paths, artifact=artifact, label=str(int(time.time())))

    def write(self, say: Callable[[str], object], warn: Callable[[list[Diagnostic]], object]) -> Promotion:
        """Push the folder, whose image a Job builds, and write the spec that trains.

        Args:
            say: receives what was pushed.
            warn: receives warnings about files that look like credentials.

        Raises:
            InputError: the folder or the spec is invalid.
            CheckFailed: there is no image that trains.
            SystemFailure: the registry is unreachable or rejects the push.
        """
        artifact = ""
        if self.folder is not None:
            entries = read_folder(self.folder, self.dockerfile)
            if warnings := [*find_secret_files(entries)]:
                warn(warnings)
            with tempfile.TemporaryFile() as archive:
                packed = pack(entries, archive)
                artifact = push(packed, archive, target(self.repository)).reference
            say(f"pushed {plural(packed.files, 'file')}, {size_text(packed.bytes)}: {artifact}")
        made = self.promotion(artifact)
        write_promotion(made, self.config)
        return made


def continuation_of(config: Config, name: str, filename: str, folder: Path | None) -> Continuation:
    """Return how the work of a Notebook continues.

    Args:
        config: settings of the repository.
        name: name of the Notebook.
        filename: file with its spec; empty if it is one of the repository's specs.
        folder: the folder that was synchronized; the image is built from it if it has a Dockerfile.

    Raises:
        InputError: a spec is invalid.
        CheckFailed: there is no such Notebook, no image that trains, or no place for the image.
    """
    spec = find_notebook(config, name, [filename] if filename else [])
    block = spec.block
    assert isinstance(block, Notebook)
    build = block.spec.build
    dockerfile = (build.dockerfile if build is not None else None) or _DOCKERFILE
    if folder is None or not (folder / dockerfile).is_file():
        folder = None
    repository = (build.repository if build is not None else None) or default_repository(name, config)
    # A dialect may have a registry of its own, as Substratus.
    registry = config.dialects.get(spec.entry.system, {}).get("registry")
    repository = repository or (f"{registry}/{name}" if registry else "")
    if folder is not None and not repository:
        raise CheckFailed("there is no repository for the image", hint="set `builds.registry` in kaigen.yaml")
    found = Continuation(config, name, filename, folder, dockerfile, repository)
    found.promotion(f"{repository}@{_UNKNOWN}" if folder is not None else "")
    return found
