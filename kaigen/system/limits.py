"""The limits of a run, whatever is in the repository.

A `Limit` has a default and a variable that changes it: `kaigen.cli.limits` applies those of the whole run,
`kaigen.extend.process` those of the processes for templates and patches of users. The limits of files and folders are
fixed.
"""

from __future__ import annotations

import os

from msgspec import Struct


class Limit(Struct, frozen=True):
    """A limit.

    Attributes:
        variable: environment variable that changes it.
        default: its value without the variable.
        unit: as in hints.
    """

    variable: str
    default: int
    unit: str

    @property
    def hint(self) -> str:
        """How to raise it."""
        return f"set {self.variable} to more {self.unit}, or to 0 for no limit"

    def read(self) -> int:
        """Return the limit; 0 for none.

        Raises:
            ValueError: the variable is not a number.
        """
        text = os.environ.get(self.variable) or str(self.default)
        if not text.isascii() or not text.isdecimal() or len(text) > 9:
            raise ValueError(f"{self.variable} is a whole number, not {text!r}")
        return int(text)


RUN_TIME = Limit("KAIGEN_TIME_LIMIT", 600, "seconds")
"""Seconds that a run may take. 5,000 specs take less than one minute."""
RUN_MEMORY = Limit("KAIGEN_MEMORY_LIMIT", 8192, "MiB")
"""MiB of memory that a run may have. 5,000 specs need less than 1,024."""
EXTENSION_TIME = Limit("KAIGEN_EXTENSION_TIME_LIMIT", 10, "seconds")
"""Seconds of processor time for the templates of one spec, or for one patch of one app. They take milliseconds."""
EXTENSION_MEMORY = Limit("KAIGEN_EXTENSION_MEMORY_LIMIT", 512, "MiB")
"""MiB of addresses of a process for templates or patches. An idle one has 100."""
EXTENSION_ANSWER_MIB = 32
"""Most MiB that such a process may answer. An object that a cluster stores has less than 2."""
FILE_BYTES = 2 << 20
"""Most bytes of a file that a person writes, such as a spec or `kaigen.yaml`. A spec is about a page long."""
GENERATED_FILE_BYTES = 64 << 20
"""Most bytes of a file that a program writes: a lock, an index, rendered manifests with CustomResourceDefinitions."""
FOLDER_DEPTH = 100
"""Most levels of folders below one that is searched. Repositories have about ten."""
EVERY = (RUN_TIME, RUN_MEMORY, EXTENSION_TIME, EXTENSION_MEMORY)
