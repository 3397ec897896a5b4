"""Objects that a command creates, and deletes again unless it succeeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kaigen.cluster.client import Cluster
from kaigen.cluster.errors import ApiError
from kaigen.diagnostics.errors import SystemFailure
from kaigen.kubernetes.manifest import Manifest
from kaigen.ops.interrupts import ignore_interrupts

INTERRUPTED_S = 3.0
"""Seconds for which a cluster that does not answer is asked to delete something after Ctrl-C."""
_TIMEOUTS_S = (2.0, 4.0)
_POD = "v1/Pod"

Say = Callable[[str], object]


class Creation:
    """The objects that were created so far."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        """Begin with nothing.

        Args:
            cluster: the cluster.
            namespace: namespace of the objects.
        """
        self._cluster = cluster
        self._namespace = namespace
        self._made: list[tuple[str, str, int | None]] = []

    def create(self, body: Manifest, grace: int | None = None) -> Manifest:
        """Create an object.

        Args:
            body: the object.
            grace: seconds that its processes get to end when it is deleted again.

        Raises:
            ApiError: the server refused.
        """
        item = (f"{body['apiVersion']}/{body['kind']}", body["metadata"]["name"], grace)
        # Noted before the request: an interrupt may come while the server answers.
        self._made.append(item)
        try:
            return self._cluster.create(body, self._namespace)
        except ApiError:
            self._made.remove(item)
            raise

    @contextmanager
    def undone_on_error(self, say: Say) -> Iterator[None]:
        """Delete the objects if the block ends with an error, which stays the one that is raised.

        What cannot be deleted is printed with the command that deletes it.

        Args:
            say: receives what is deleted.
        """
        try:
            yield
        except KeyboardInterrupt:
            with ignore_interrupts(), hurry(self._cluster):
                self._announce()
                self.undo(say)
            raise
        except BaseException:
            if any(kind != _POD for kind, _, _ in self._made):  # pods of this command are not what the user asked for
                self._announce()
            self.undo(say)
            raise

    def _announce(self) -> None:
        if self._made:
            self._cluster.say(f"deleting what was created: {', '.join(_short(*item) for item in self._made)}")

    def undo(self, say: Say, kind: str = "") -> None:
        """Delete the objects, the last one first, and print what could not be deleted.

        Args:
            say: receives what is deleted.
            kind: only those of a kind, as in `v1/Pod`; empty for all.
        """
        left = [item for item in reversed(self._made) if kind in ("", item[0])]
        self._made = [item for item in self._made if item not in left]
        why: BaseException | None = None
        kept = []
        try:
            while left:
                kind, name, grace = left[0]
                try:
                    if self._cluster.delete(kind, name, self._namespace, grace=grace):
                        say(f"{name} deleted again")
                except ApiError as error:
                    why = error
                    kept.append(left[0])
                del left[0]
        except (SystemFailure, KeyboardInterrupt) as error:
            why = error
        if kept or left:
            names = " ".join(_short(*item) for item in (*kept, *left))
            reason = str(why) if str(why) else "interrupted"
            self._cluster.say(f"not deleted: {reason}")
            self._cluster.say(f"delete what is left with: kubectl delete -n {self._namespace} {names}")


def _short(kind: str, name: str, _grace: int | None) -> str:
    """Return how kubectl names an object."""
    return f"{kind.rpartition('/')[2].lower()}/{name}"


@contextmanager
def hurry(cluster: Cluster, seconds: float = INTERRUPTED_S) -> Iterator[None]:
    """Let requests fail within seconds: the user has pressed Ctrl-C and waits."""
    before = cluster.patience, cluster.timeouts
    cluster.patience, cluster.timeouts = seconds, _TIMEOUTS_S
    try:
        yield
    finally:
        cluster.patience, cluster.timeouts = before
