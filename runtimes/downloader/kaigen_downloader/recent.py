"""The choice of files of a bucket by the time of their last change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kaigen_downloader.errors import BadInput, Corrupt
from kaigen_downloader.text import plural, say, shown


@dataclass(frozen=True, slots=True)
class Recent:
    """Which files are chosen by the time of their last change, when they are listed.

    Attributes:
        newest: how many, the last modified ones; None for any number.
        within: seconds since the last change; None for any.
    """

    newest: int | None = None
    within: float | None = None

    def chosen(self, modified: Mapping[str, datetime | None], where: str) -> list[str]:
        """Return the paths of the files that are chosen, sorted.

        Of files that were modified at the same time, those whose paths come last are the newer ones: names with a date
        are in this order.

        Args:
            modified: when each file was modified.
            where: the bucket and the prefix, for messages.

        Raises:
            Corrupt: the server does not say when a file was modified.
            BadInput: no file is new enough.
        """
        if self.newest is None and self.within is None:
            return sorted(modified)
        times: list[tuple[datetime, str]] = []
        for path, time in modified.items():
            if time is None:
                raise Corrupt(f"{where}: the server does not say when {shown(path)} was modified")
            times.append((time, path))
        times.sort(reverse=True)
        if self.within is not None:
            since = datetime.now(UTC) - timedelta(seconds=self.within)
            times = [each for each in times if each[0] >= since]
            if modified and not times:
                total = plural(len(modified), "file")
                raise BadInput(f"{where}: none of its {total} was modified since {since:%FT%TZ}")
        times = times[: self.newest]
        if times:
            say(
                f"chosen {plural(len(times), 'file')} of {len(modified)}, "
                f"modified from {times[-1][0]:%FT%TZ} to {times[0][0]:%FT%TZ}"
            )
        return sorted(path for _, path in times)


ALL = Recent()
"""All files, whenever they were modified."""


def time_of(entry: Mapping[str, object]) -> datetime | None:
    """Return when a file of a listing was modified; None if the listing does not say it."""
    found = entry.get("LastModified")
    if not isinstance(found, datetime):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
