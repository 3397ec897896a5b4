"""Sends the lines of files to an engine, and stores its answers.

`generate.py PARAMS INPUT OUTPUT MODEL WEIGHTS -- ENGINE ...`

The shards of a Job each take a range of the lines. Answers are stored in parts, each a file that is renamed when it is
whole, so a pod that starts again goes on after the last part. The shard that ends last joins the parts, in the order of
the lines, to `results.jsonl` or `results.parquet` and `failures.jsonl`, and writes `results.json`.

vLLM's own `vllm run-batch` starts again from the first line: it opens its result with "w", and stops at the first line
that is not a request (vLLM 0.33.0: `batch_output_writer` and `validate_batch` in
vllm/entrypoints/launchers/run_batch.py).
"""

import contextlib
import hashlib
import http.client
import importlib.util
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

LINES = (".jsonl", ".ndjson")
TABLE = ".parquet"
LONGEST = 16 << 20
"""Longest line, in bytes."""
PORT, PATIENCE, START, REPORT = 8000, 900.0, 3600.0, 30.0
"""Port of the engine; seconds until an answer, until the engine starts, and between two messages about progress."""
ATTEMPTS = 4
WRONG_SETTINGS, WRONG_INPUT, TOO_MANY = 2, 10, 11
"""Exit codes after which a retry cannot succeed."""
PATHS = {
    "chat": "/v1/chat/completions",
    "complete": "/v1/completions",
    "embed": "/v1/embeddings",
    "classify": "/classify",
}
FIELD = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_.-]*)\}")
MESSAGE = "/dev/termination-log"


class Failed(Exception):
    """The run ends with an exit code and a reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class BadLine(Exception):
    """A line has no answer."""


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


class Line(NamedTuple):
    """A line of the input: its place among all lines from 0, its file, its number there from 1, and its text."""

    place: int
    file: str
    number: int
    text: bytes


class Input:
    """The lines of the files of a path, in the order of their names.

    Attributes:
        files: their paths.
        count: the number of lines.
        digest: SHA-256 of their content and names.
    """

    def __init__(self, path: str) -> None:
        self.root = path if os.path.isdir(path) else os.path.dirname(path)
        self.files = sorted(self._find(path))
        if not self.files:
            raise Failed(WRONG_INPUT, f"no file of {path} ends in {', '.join((*LINES, TABLE))}")
        found = hashlib.sha256()
        self._counts: list[int] = []
        for file in self.files:
            found.update(self._name(file).encode() + b"\0")
            self._counts.append(_count(file, found.update))
        self.count = sum(self._counts)
        self.digest = found.hexdigest()
        if not self.count:
            raise Failed(WRONG_INPUT, f"{path} has no lines")

    def _find(self, path: str) -> Iterator[str]:
        endings = (*LINES, TABLE)
        if not os.path.exists(path):
            raise Failed(WRONG_INPUT, f"{path} does not exist")
        if os.path.isfile(path):
            yield from [path] if path.endswith(endings) else []
        for folder, folders, names in os.walk(path):
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield from (os.path.join(folder, name) for name in names if name.endswith(endings) and name[0] != ".")

    def _name(self, file: str) -> str:
        return os.path.relpath(file, self.root)

    def lines(self, first: int, end: int) -> Iterator[Line]:
        """Yield the lines from one place to before another."""
        place = 0
        for file, count in zip(self.files, self._counts, strict=True):
            begin, stop = max(first - place, 0), min(end - place, count)
            if begin < stop:
                for number, text in enumerate(_lines(file, begin, stop), begin):
                    yield Line(place + number, self._name(file), number + 1, text)
            place += count

    def sources(self) -> Iterator[tuple[str, str, bool]]:
        """Yield the name of each file in the results, its path, and whether it is a table."""
        yield from ((self._name(file), file, file.endswith(TABLE)) for file in self.files)


def _count(file: str, update: Callable[[bytes], object]) -> int:
    """Return the number of lines of a file, and pass its content to a function."""
    if not file.endswith(TABLE):
        count = 0
        for text in _texts(file):
            update(text)
            count += 1
        return count
    with open(file, "rb") as stream:
        while piece := stream.read(1 << 20):
            update(piece)
    with _readable():
        return int(tables().Table(file).count)


def _lines(file: str, first: int, end: int) -> Iterator[bytes]:
    """Yield the lines of a file from one to before another, or the rows of a table as lines."""
    if file.endswith(TABLE):
        with _readable():
            yield from tables().Table(file).lines(first, end)
    else:
        yield from itertools.islice(_texts(file), first, end)


@cache
def tables() -> Any:
    """Return the module for Parquet. An image without pyarrow finds it in a folder for its version of Python."""
    if folder := os.environ.get("KAIGEN_PYARROW"):
        sys.path.append(os.path.join(folder, f"{sys.version_info.major}.{sys.version_info.minor}"))
    path = os.environ.get("KAIGEN_TABLES", os.path.join(os.path.dirname(__file__), "kaigen_tables.py"))
    spec = importlib.util.spec_from_file_location("kaigen_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        reason = f"Parquet needs pyarrow, which this pod does not have: set `generate.parquet: true` ({error})"
        raise Failed(WRONG_INPUT, reason) from None
    return module


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    module = tables()
    try:
        yield
    except module.Broken as error:
        raise Failed(WRONG_INPUT, str(error)) from None


def _texts(file: str) -> Iterator[bytes]:
    """Yield the lines of a file. Of a line that is too long, yield the beginning."""
    with open(file, "rb") as stream:
        while text := stream.readline(LONGEST + 1):
            rest = text
            while len(rest) > LONGEST and not rest.endswith(b"\n"):
                rest = stream.readline(LONGEST + 1)
            yield text


class Requests:
    """Makes the requests of lines, and what is stored of the answers."""

    def __init__(self, params: Mapping[str, Any], model: str) -> None:
        self.params, self.model = params, model
        self.task = params["task"]
        self.is_openai = params["format"] == "openai"

    def row(self, line: Line) -> dict[str, Any]:
        """Return the fields of a line."""
        if len(line.text) > LONGEST:
            raise BadLine(f"the line is longer than {LONGEST >> 20} MiB")
        text = line.text.strip()
        if not text:
            raise BadLine("the line is empty")
        try:
            row = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise BadLine(f"the line is not JSON: {error}") from None
        if not isinstance(row, dict):
            raise BadLine("the line is not a JSON object")
        return row

    def request(self, row: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the path and the body of the request for a row."""
        if self.is_openai:
            path, body = row.get("url"), row.get("body")
            if not isinstance(path, str) or path not in PATHS.values() or row.get("method", "POST") != "POST":
                raise BadLine(f"`method` and `url` must be POST and one of {', '.join(PATHS.values())}")
            if not isinstance(body, dict) or not isinstance(row.get("custom_id"), str):
                raise BadLine("`custom_id` must be a text and `body` an object")
            return path, {**body, "model": self.model, **({"stream": False} if body.get("stream") else {})}
        body = {**self.params["parameters"], "model": self.model}
        if self.task == "chat":
            body["messages"] = self._messages(row)
        else:
            body["prompt" if self.task == "complete" else "input"] = self._text(row, self.params.get("prompt"), "text")
        return PATHS[self.task], body

    def _messages(self, row: Mapping[str, Any]) -> list[Any]:
        system = self.params.get("system")
        before = [] if system is None else [{"role": "system", "content": fill(system, row)}]
        if self.params.get("prompt") is None and "messages" in row:
            if not isinstance(row["messages"], list):
                raise BadLine("`messages` is not a list")
            return [*before, *row["messages"]]
        return [*before, {"role": "user", "content": self._text(row, self.params.get("prompt"), "prompt")}]

    def _text(self, row: Mapping[str, Any], template: str | None, name: str) -> str:
        if template is not None:
            return fill(template, row)
        for each in (name, "prompt", "text"):
            if isinstance(row.get(each), str):
                return str(row[each])
        raise BadLine("the line has neither `prompt` nor `text`")

    def result(self, line: Line, row: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        """Return what is stored of an answer."""
        if self.is_openai:
            name = f"line-{line.place + 1}"
            response = {"status_code": 200, "request_id": name, "body": answer}
            return {"id": name, "custom_id": row["custom_id"], "response": response, "error": None}
        found = {"line": line.number, "file": line.file, "row": row, **self._output(answer)}
        return {**found, "usage": answer.get("usage")}

    def _output(self, answer: dict[str, Any]) -> dict[str, Any]:
        try:
            if self.task in ("embed", "classify"):
                (item,) = answer["data"]
                if self.task == "embed":
                    return {"output": item["embedding"]}
                return {"output": item["label"], "probabilities": item["probs"]}
            choices = answer["choices"]
            texts = [each["message"]["content"] if self.task == "chat" else each["text"] for each in choices]
            reasons = [each["finish_reason"] for each in choices]
        except (KeyError, TypeError, ValueError) as error:
            raise BadLine(f"the engine's answer has another form: {error!r}") from None
        if len(texts) == 1:
            return {"output": texts[0], "finishReason": reasons[0]}
        return {"output": texts, "finishReason": reasons}


def fill(template: str, row: Mapping[str, Any]) -> str:
    """Return a template with the fields of a row; a point in a name leads into an object."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return found[0][0]
        at: Any = row
        for part in [name] if name in row else name.split("."):
            if not isinstance(at, dict) or part not in at:
                raise BadLine(f"the line has no field `{name}`")
            at = at[part]
        return at if isinstance(at, str) else json.dumps(at, ensure_ascii=False)

    return FIELD.sub(value, template)


class Engine:
    """A server that this process starts, or one that runs already, on a port of the loopback device.

    Attributes:
        port: its port.
        is_openai: whether lines name the paths of their requests.
        free: connections that no request uses.
        stopped: whether no further requests are sent.
        process: the server; None for one that runs already.
    """

    def __init__(self, command: Sequence[str], port: int, *, is_openai: bool = False) -> None:
        self.port, self.is_openai, self.stopped = port, is_openai, False
        self.free: list[http.client.HTTPConnection] = []
        # Its messages are not the log of the run: the last line of a pod is the run's.
        self.process = subprocess.Popen(command, stdout=sys.stderr) if command else None

    def wait(self, seconds: float) -> None:
        """Wait until it is ready."""
        end = time.monotonic() + seconds
        while not self.is_healthy():
            self.check()
            if time.monotonic() > end:
                raise Failed(1, f"the engine was not ready after {seconds:.0f} s")
            time.sleep(0.2)

    def check(self) -> None:
        """Raise when its process has ended."""
        if self.process is not None and self.process.poll() is not None:
            raise Failed(1, f"the engine ended with exit code {self.process.returncode}")

    def is_healthy(self) -> bool:
        """Return whether it answers."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            with contextlib.closing(connection):
                connection.request("GET", "/health")
                return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False

    def ask(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request.

        Raises:
            BadLine: the engine refuses the request.
            Failed: the engine is gone.
        """
        try:
            data = json.dumps(body, allow_nan=False)
        except ValueError:
            raise BadLine("the line has numbers that JSON does not have") from None
        reason = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(min(2**attempt, 10) / 4)
            try:
                status, answer = self._send(path, data)
            except (OSError, http.client.HTTPException) as error:
                reason = f"no answer: {error!r}"
                self.check()
                continue
            if status == 200:
                found = json.loads(answer)
                if not isinstance(found, dict):
                    raise BadLine("the engine's answer is not a JSON object")
                return found
            reason = f"HTTP {status}: {_shorten(answer.decode(errors='replace'))}"
            if status == 404 and not self.is_openai:
                raise Failed(WRONG_SETTINGS, f"the engine cannot do the task with this model: {reason}")
            if status < 500 and status != 429:
                raise BadLine(reason)
        if not self.is_healthy():
            raise Failed(1, f"the engine does not answer any more: {reason}")
        raise BadLine(reason)

    def _send(self, path: str, data: str) -> tuple[int, bytes]:
        try:
            connection = self.free.pop()
        except IndexError:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("POST", path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            found = answer.status, answer.read()
        except BaseException:
            connection.close()
            raise
        self.free.append(connection)
        if self.stopped:
            self._close()
        return found

    def _close(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self.free.pop().close()

    def stop(self) -> None:
        """End its process, and close the connections."""
        self.stopped = True
        self._close()
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Parts:
    """The answers to a range of lines, in files that are whole. A line of a part begins with `+` or `-`.

    Attributes:
        first: place of the first line.
        end: place after the last line.
        done: place after the last line that has an answer.
        failures: the lines that failed.
    """

    def __init__(self, folder: str, first: int, end: int) -> None:
        self.folder, self.first, self.end = folder, first, end
        self.done, self.failures = first, 0

    def open(self) -> None:
        """Find out what is done."""
        os.makedirs(self.folder, exist_ok=True)
        for path in self.chain():
            with open(path, "rb") as stream:
                self.failures += sum(text.startswith(b"-") for text in stream)

    def chain(self) -> Iterator[str]:
        """Yield the paths of the parts that follow each other, and move `done` after them."""
        ends: dict[int, int] = {}
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self.folder):
                if found := re.fullmatch(r"([0-9]+)-([0-9]+)\.part", name):
                    ends[int(found[1])] = max(int(found[2]), ends.get(int(found[1]), 0))
        self.done = self.first
        while self.done in ends:
            name = f"{self.done}-{ends[self.done]}.part"
            self.done = ends[self.done]
            yield os.path.join(self.folder, name)

    def add(self, kept: Sequence[bytes]) -> None:
        """Store the answers to the next lines."""
        end = self.done + len(kept)
        write(os.path.join(self.folder, f"{self.done}-{end}.part"), kept)
        self.failures += sum(text.startswith(b"-") for text in kept)
        self.done = end

    @property
    def complete(self) -> bool:
        """Whether every line has an answer."""
        return self.done == self.end


def write(path: str, pieces: Sequence[bytes] | Iterator[bytes]) -> None:
    """Write a file that exists with all of its content or not at all, also after a crash of the node."""
    with whole(path) as new, open(new, "wb") as stream:
        stream.writelines(pieces)


@contextlib.contextmanager
def whole(path: str) -> Iterator[str]:
    """Yield the path of a new file, which replaces another one when it is written."""
    new = f"{path}.{socket.gethostname()}-{os.getpid()}.tmp"
    try:
        yield new
        with open(new, "rb") as stream:
            os.fsync(stream.fileno())
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(new)
        raise
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Run:
    """What one pod does.

    Attributes:
        params: the settings.
        lines: the input.
        output: folder of the results.
        index: number of the shard.
        shards: number of shards.
    """

    def __init__(
        self, params: Mapping[str, Any], lines: Input, output: str, model: str, folder: str, index: int, shards: int
    ) -> None:
        self.params, self.lines, self.output = params, lines, output
        self.index, self.shards = index, shards
        self.requests = Requests(params, model)
        what = [{name: params.get(name) for name in ("task", "format", "prompt", "system", "parameters")}]
        what += [{"input": lines.digest, "model": model, "weights": _identity(folder), "shards": shards}]
        self.results = f"results.{params.get('results', 'jsonl')}"
        self.key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
        self.folder = os.path.join(output, f".generate-{self.key[:16]}")

    @property
    def done(self) -> int:
        """The number of lines that all shards have stored answers to."""
        count = 0
        for index in range(self.shards):
            parts = self.parts(index)
            deque(parts.chain(), maxlen=0)
            count += parts.done - parts.first
        return count

    def parts(self, index: int) -> Parts:
        """Return the parts of a shard."""
        first, end = (self.lines.count * each // self.shards for each in (index, index + 1))
        return Parts(os.path.join(self.folder, str(index)), first, end)

    @property
    def summary(self) -> dict[str, Any] | None:
        """What `results.json` has about this run; None if it is not complete."""
        try:
            with open(os.path.join(self.output, "results.json"), encoding="utf-8") as stream:
                found = json.load(stream)
        except (OSError, ValueError):
            return None
        is_own = isinstance(found, dict) and found.get("run") == self.key
        return found if is_own and os.path.exists(os.path.join(self.output, self.results)) else None

    def work(self, engine: Engine, parts: Parts) -> None:
        """Ask the engine about every line that has no answer, in a window of requests."""
        size, concurrency = self.params["checkpointLines"], self.params["concurrency"]
        waiting: deque[Future[bytes]] = deque()
        kept: list[bytes] = []
        reported, begun, before = time.monotonic(), time.monotonic(), parts.done
        pool = ThreadPoolExecutor(concurrency)
        try:
            for line in self.lines.lines(parts.done, parts.end):
                waiting.append(pool.submit(self.answer, engine, line))
                if len(waiting) >= 2 * concurrency:
                    kept.append(waiting.popleft().result())
                    kept = self.keep(parts, kept, size)
                if time.monotonic() - reported > REPORT:
                    reported = time.monotonic()
                    self.report(parts, (parts.done - before) / (reported - begun))
            while waiting:
                kept.append(waiting.popleft().result())
                kept = self.keep(parts, kept, size)
            self.keep(parts, kept, 1)
        finally:
            # Without a wait: an engine that is gone may never answer.
            pool.shutdown(wait=False, cancel_futures=True)

    def keep(self, parts: Parts, kept: list[bytes], size: int) -> list[bytes]:
        """Store answers when there are enough of them; return those that are not stored."""
        most = self.params.get("maxFailures")
        if most is not None and kept and kept[-1].startswith(b"-"):
            failures = parts.failures + sum(text.startswith(b"-") for text in kept)
            if failures > most:
                last = _shorten(kept[-1][1:].decode().strip())
                raise Failed(TOO_MANY, f"{failures} lines failed, more than maxFailures ({most}); the last: {last}")
        if not kept or len(kept) < size:
            return kept
        parts.add(kept)
        return []

    def report(self, parts: Parts, pace: float) -> None:
        """Print the progress."""
        done = f"{parts.done - parts.first} of {parts.end - parts.first} lines"
        of_all = f"{self.done} of {self.lines.count} lines of all shards"
        print(f"shard {self.index}: {done}, {parts.failures} failed, {pace:.1f} lines/s; {of_all}", flush=True)

    def answer(self, engine: Engine, line: Line) -> bytes:
        """Return what is stored for a line."""
        custom_id = None
        try:
            row = self.requests.row(line)
            custom_id = row.get("custom_id")
            path, body = self.requests.request(row)
            return b"+" + _json(self.requests.result(line, row, engine.ask(path, body)))
        except (BadLine, RecursionError, ValueError) as error:
            found = {"line": line.number, "file": line.file, "reason": str(error)}
            return b"-" + _json({**found, **({"custom_id": custom_id} if isinstance(custom_id, str) else {})})

    def join(self) -> dict[str, Any] | None:
        """Join the parts of all shards; return the summary, or None when other shards are not complete.

        Two shards that end at the same time may both do it: they write the same files.
        """
        paths: list[str] = []
        for index in range(self.shards):
            parts = self.parts(index)
            paths += parts.chain()
            if not parts.complete:
                # Another shard may have joined, and deleted the parts.
                return self.summary
        try:
            self._write_results(paths)
            write(os.path.join(self.output, "failures.jsonl"), _marked(paths, b"-"))
            failures = sum(1 for _ in _marked(paths, b"-"))
        except FileNotFoundError:
            if (found := self.summary) is not None:
                return found
            raise
        lines = self.lines.count
        found = {"run": self.key, "lines": lines, "results": lines - failures, "failures": failures}
        write(os.path.join(self.output, "results.json"), [_json(found)])
        return found

    def _write_results(self, paths: Sequence[str]) -> None:
        path = os.path.join(self.output, self.results)
        for other in {"results.jsonl", "results.parquet"} - {self.results}:
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(self.output, other))
        if not path.endswith(TABLE):
            write(path, _marked(paths, b"+"))
            return
        module = tables()
        with _readable(), whole(path) as new:
            sources = [module.Source(*each) for each in self.lines.sources()]
            module.write_results(new, sources, _marked(paths, b"+"))

    def clean(self) -> None:
        """Delete the parts, those of earlier settings too."""
        for name in os.listdir(self.output):
            if name.startswith(".generate-"):
                shutil.rmtree(os.path.join(self.output, name), ignore_errors=True)


def _identity(folder: str) -> object:
    """Return what the downloader wrote about the weights of a folder; None for a folder that it did not fill."""
    try:
        with open(os.path.join(folder, ".kaigen", "model.json"), encoding="utf-8") as stream:
            found = json.load(stream)
        return [found["identity"], found["source"]["commit"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _marked(paths: Sequence[str], mark: bytes) -> Iterator[bytes]:
    for path in paths:
        with open(path, "rb") as stream:
            yield from (text[1:] for text in stream if text.startswith(mark))


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace") + b"\n"


def _shorten(text: str) -> str:
    return text if len(text) <= 500 else f"{text[:500]}…"


def run(
    params: Mapping[str, Any], source: str, output: str, model: str, folder: str, command: Sequence[str]
) -> dict[str, Any]:
    """Do the work of this pod; return what its message says."""
    index, shards = int(os.environ.get("JOB_COMPLETION_INDEX", "0")), int(os.environ.get("SHARDS", "1"))
    this = Run(params, Input(source), output, model, folder, index, shards)
    if (found := this.summary) is not None:
        return completion_of(this, found)
    parts = this.parts(index)
    parts.open()
    print(f"shard {index}: lines {parts.first + 1} to {parts.end}", flush=True)
    this.report(parts, 0)
    if not parts.complete:
        port = int(os.environ.get("KAIGEN_ENGINE_PORT", PORT))
        engine = Engine(command, port, is_openai=this.requests.is_openai)
        try:
            engine.wait(START)
            this.work(engine, parts)
        finally:
            engine.stop()
    own = {"shard": {"index": index, "lines": parts.end - parts.first, "failures": parts.failures}}
    joined = this.join()
    return own if joined is None else {**own, **completion_of(this, joined)}


def completion_of(this: Run, summary: dict[str, Any]) -> dict[str, Any]:
    """Return the message of a shard that found the results of all."""
    this.clean()
    if not summary["results"]:
        raise Failed(TOO_MANY, "every line failed; failures.jsonl has the reasons")
    return {name: summary[name] for name in ("lines", "results", "failures")}


def stop(number: int, frame: object) -> None:
    """End the run; what is not stored is asked again."""
    raise Failed(128 + number, f"the pod was stopped by signal {number}")


def main(params: str, source: str, output: str, model: str, folder: str, *command: str) -> int:
    """Run, and leave a message; return the exit code."""
    signal.signal(signal.SIGTERM, stop)
    code = 0
    try:
        with open(params, encoding="utf-8") as stream:
            message = run(json.load(stream), source, output, model, folder, command[1:])
    except Failed as error:
        code, message = error.code, {"error": str(error)}
    text = json.dumps(message)
    print(text, flush=True)
    with contextlib.suppress(OSError), open(MESSAGE, "w", encoding="utf-8") as stream:
        stream.write(text)
    return code


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    # Threads may wait for answers of an engine that is gone.
    os._exit(code)
