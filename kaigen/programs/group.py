"""Runs an engine as a member of a group: `group.py PORT RANK LEADER SILENCE COMMAND ...`.

It ends when the engine or another pod of the group ends. The workers keep a connection to the leader, and a pod that is
silent for SILENCE seconds, as after its node was lost, counts as lost. A process that ends is noticed at once.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from types import FrameType


class Member:
    """The process of one pod.

    Attributes:
        port: port of the leader that the workers connect to.
        rank: number of the pod, 0 for the leader.
        leader: host name of the leader.
        silence: longest silence of another pod, in seconds.
        command: the engine's command line.
    """

    def __init__(self, port: int, rank: str, leader: str, silence: float, command: list[str]) -> None:
        self.port, self.rank, self.leader, self.silence = port, rank, leader, silence
        self.engine = subprocess.Popen(command)
        self.members: set[str] = set()
        self.stopping = threading.Event()

    def run(self) -> int:
        """Wait for the end of the engine; return the exit code of the pod."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.forward)
        if self.rank == "0":
            server = socket.create_server(("", self.port))
            threading.Thread(target=self.lead, args=(server,), daemon=True).start()
        else:
            threading.Thread(target=self.follow, daemon=True).start()
        code = self.engine.wait()
        self.stopping.set()
        return code if code >= 0 else 128 - code

    def forward(self, number: int, frame: FrameType | None) -> None:
        """Give a signal to the engine."""
        self.engine.send_signal(number)

    def stop(self, reason: str) -> None:
        """End the pod, so that it starts again, unless the engine has ended by itself."""
        if not self.stopping.is_set():
            print("group: " + reason + "; this pod starts again", file=sys.stderr, flush=True)
            self.engine.kill()
            os._exit(1)

    def lead(self, server: socket.socket) -> None:
        """Answer every worker."""
        while True:
            connection, _ = server.accept()
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection: socket.socket) -> None:
        """Answer one worker until it is lost."""
        member = ""
        try:
            connection.settimeout(self.silence)
            stream = connection.makefile("rb", buffering=0)
            member = stream.readline().decode().strip()
            if not member:
                return
            if member in self.members:
                self.stop("worker " + member + " started again")
            self.members.add(member)
            while stream.read(1):
                connection.sendall(b".")
        except OSError:
            pass
        finally:
            connection.close()
        if member:
            self.stop("worker " + member + " is lost")

    def follow(self) -> None:
        """Keep a connection to the leader until it is lost."""
        while True:
            try:
                connection = socket.create_connection((self.leader, self.port), 5)
                break
            except OSError:
                time.sleep(1)
        try:
            connection.settimeout(self.silence)
            connection.sendall(self.rank.encode() + b"\n")
            while True:
                connection.sendall(b".")
                if not connection.recv(1):
                    break
                time.sleep(self.silence / 6)
        except OSError:
            pass
        self.stop("the leader is lost")


if __name__ == "__main__":
    sys.exit(Member(int(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4]), sys.argv[5:]).run())
