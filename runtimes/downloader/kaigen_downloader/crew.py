"""Worker threads that share one task and stop together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kaigen_downloader.errors import Stopped
from kaigen_downloader.net import Net
from kaigen_downloader.progress import Meter


class Crew:
    """The threads. `change` guards their shared state and is notified of changes."""

    def __init__(self, net: Net, meter: Meter, stop: threading.Event) -> None:
        """Initialize.

        Args:
            net: the client, whose connections are cut when the work ends.
            meter: prints its line now and then.
            stop: set when the work ends, normally or by a failure.
        """
        self._net = net
        self._meter = meter
        self._stop = stop
        self.change = threading.Condition()
        self._running = 0
        self._failure: BaseException | None = None

    def run(self, count: int, work: Callable[[], None], tidy: Callable[[], None] | None = None) -> None:
        """Run the threads until no work is left.

        Args:
            count: how many.
            work: what each runs.
            tidy: called at the end, also after a failure, unless a thread cannot be got to end.

        Raises:
            Failure: the first one that any of them met.
        """
        threads = [
            threading.Thread(target=self._one, args=(work,), name=f"connection-{number}", daemon=True)
            for number in range(count)
        ]
        self._running = len(threads)
        try:
            for thread in threads:
                thread.start()
            with self.change:
                while self._running and self._failure is None:
                    self.change.wait(self._meter.wait() or 0.01)
                    self._meter.update()
        finally:
            self._stop.set()
            self._net.abort()
            self.notify()
        # A thread may still sit in a name look-up or a connect; the process does not wait for those.
        end = time.monotonic() + 5.0
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        if tidy is not None and not any(thread.is_alive() for thread in threads):
            tidy()
        if self._failure is not None:
            raise self._failure

    def notify(self) -> None:
        """Wake the threads that wait for a change."""
        with self.change:
            self.change.notify_all()

    def _one(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Stopped:
            pass
        except BaseException as error:
            with self.change:
                self._failure = self._failure or error
            self._stop.set()
        finally:
            with self.change:
                self._running -= 1
                self.change.notify_all()
