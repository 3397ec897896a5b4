"""Requests that are given up, refused or overtaken by the end of the server."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import openai
import pytest
from served import tiny
from served.server import PACKAGE, Server, until

ENDLESS = {"prompt": "A", "max_tokens": 4000, "temperature": 0, "ignore_eos": True}
RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with which an answer may take many seconds."""
    return tiny.make(tmp_path_factory.mktemp("slow") / "tiny", hidden=256, layers=8, context=4096)


@pytest.fixture(scope="module")
def small(slow: Path) -> Iterator[Server]:
    """Two rows, and room for two who wait."""
    with Server(slow, "--threads", "1", "--max-num-seqs", "2", "--max-queue", "2") as running:
        yield running


@contextmanager
def begun(server: Server, **more: object) -> Iterator[http.client.HTTPConnection]:
    """Asks for an answer, and goes away when the context ends."""
    with closing(http.client.HTTPConnection(server.url.removeprefix("http://"))) as connection:
        connection.request("POST", "/v1/completions", json.dumps(ENDLESS | more))
        yield connection


def idle(server: Server) -> bool:
    """Return whether no request is running or waiting."""
    return server.metric(RUNNING) + server.metric(WAITING) == 0


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_disconnects_frees_its_rows(small: Server, stream: bool) -> None:
    before = small.metric("kaigen_chat_cancelled_total")
    with begun(small, stream=stream, n=2) as connection:
        until(lambda: small.metric(RUNNING) == 2)
        if stream:
            with connection.getresponse() as answer:
                assert answer.readline().startswith(b"data: ")
    until(lambda: idle(small))
    until(lambda: small.metric("kaigen_chat_cancelled_total") - before == 2)
    assert small.metric("vllm:request_success_total") == 0


def test_a_client_that_disconnects_while_waiting_leaves_the_queue(small: Server) -> None:
    with begun(small, n=2):
        until(lambda: small.metric(RUNNING) == 2)
        with begun(small, n=2, stream=True):
            until(lambda: small.metric(WAITING) == 2)
        until(lambda: small.metric(WAITING) == 0)
        assert small.metric(RUNNING) == 2
    until(lambda: idle(small))


def test_a_stream_that_openais_client_closes_frees_its_row(small: Server) -> None:
    with small.client() as client:
        stream = client.completions.create(
            model="tiny", prompt="A", max_tokens=4000, stream=True, extra_body={"ignore_eos": True}
        )
        next(iter(stream))
        assert small.metric(RUNNING) == 1
        stream.close()
        until(lambda: idle(small))


def test_a_full_queue_is_429_with_a_time_to_come_back(small: Server) -> None:
    with small.client() as client:
        with ExitStack() as held:
            for _ in range(4):
                held.enter_context(begun(small))
            until(lambda: small.metric(RUNNING) == 2 and small.metric(WAITING) == 2)
            with pytest.raises(openai.RateLimitError) as caught:
                client.completions.create(model="tiny", prompt="A")
            assert 1 <= int(caught.value.response.headers["retry-after"]) <= 60
            assert caught.value.code == "queue_full"
            assert small.status("/readyz") == 200
        until(lambda: idle(small))
        assert client.completions.create(model="tiny", prompt="A", max_tokens=2).choices


def test_a_new_row_joins_a_batch_that_runs(small: Server) -> None:
    with begun(small), small.client() as client:
        until(lambda: small.metric(RUNNING) == 1)
        assert client.completions.create(model="tiny", prompt="B", max_tokens=3).choices
        assert small.metric(RUNNING) == 1
    until(lambda: idle(small))


def test_sigterm_lets_running_answers_end_and_takes_no_more(slow: Path) -> None:
    asked = {"model": "tiny", "prompt": "B", "max_tokens": 80, "extra_body": {"ignore_eos": True}}
    with (
        Server(slow, "--threads", "1") as server,
        server.client() as client,
        ThreadPoolExecutor(1) as other,
        begun(server, stream=True, max_tokens=60, stream_options={"include_usage": True}) as connection,
        connection.getresponse() as answer,
    ):
        lines = [answer.readline()]
        whole = other.submit(client.completions.create, **asked)
        until(lambda: server.metric(RUNNING) == 2)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: server.status("/readyz") != 200)
        lines += answer.readlines()
        assert lines[-2].strip() == b"data: [DONE]"
        assert json.loads(lines[-4].removeprefix(b"data: "))["usage"]["completion_tokens"] == 60
        assert whole.result().usage.completion_tokens == 80
        assert server.wait() == 0, server.log
        assert "Traceback" not in server.log


def test_a_drain_that_takes_too_long_ends_anyway(slow: Path) -> None:
    with (
        Server(slow, "--threads", "1", "--drain-timeout", "1s") as server,
        begun(server, stream=True) as connection,
        connection.getresponse() as answer,
    ):
        answer.readline()
        assert server.stop() == 0, server.log
        with pytest.raises(http.client.IncompleteRead):
            answer.read()


def test_an_idle_server_ends_at_once(slow: Path) -> None:
    with Server(slow, "--threads", "1") as server:
        server.process.send_signal(signal.SIGINT)
        assert server.wait() == 0, server.log


def test_keys_are_required_and_never_shown(model: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("first-secret\n\nsecond-secret\n")
    with Server(model, "--threads", "1", "--api-key-file", str(keys), "--log-level", "debug") as server:
        for key in ("first-secret", "second-secret"):
            with server.client(key) as client:
                assert client.models.list().data
        for key in ("", "first-secre", "first-secret2", "Bearer", "\N{SNOWMAN}".encode().decode("latin-1")):
            status, body, headers = server.request("/v1/models", Authorization=f"Bearer {key}")
            assert status == 401
            assert json.loads(body)["error"]["code"] == "invalid_api_key"
            assert headers["www-authenticate"] == "Bearer"
        for path in ("/v1/models", "/v1/chat/completions", "/chat", "/generate", "/openapi.json", "/nothing"):
            assert server.status(path) == 401
        for path in ("/", "/health", "/healthz", "/readyz", "/metrics"):
            assert server.status(path) == 200
        with server.client("wrong-key") as client, pytest.raises(openai.AuthenticationError):
            client.completions.create(model="tiny", prompt="A")
        assert server.stop() == 0
        assert "secret" not in server.log
        assert "wrong-key" not in server.log


def test_a_key_may_come_from_the_environment(model: Path) -> None:
    with Server(model, "--threads", "1", KAIGEN_CHAT_API_KEY="from-a-secret") as server:
        assert server.status("/v1/models") == 401
        with server.client("from-a-secret") as client:
            assert client.models.list().data


def test_bodies_are_bounded_with_and_without_a_length(model: Path) -> None:
    with Server(model, "--threads", "1", "--max-body", "1Ki") as server:
        assert server.request("/v1/completions", b"{" + b" " * 2000 + b"}")[0] == 413
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as chunked:
            chunked.sendall(
                b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                + (b"400\r\n" + b" " * 1024 + b"\r\n") * 2
            )
            assert b" 413 " in chunked.recv(100)
        status, body, _ = server.request("/v1/completions", b'{"prompt": "A", "max_tokens": 1}')
        assert status == 200, body


def test_limits_of_context_rows_and_cache_hold(model: Path) -> None:
    flags = ["--threads", "1", "--max-model-len", "64", "--max-num-seqs", "4", "--max-cache-tokens", "128"]
    with Server(model, *flags) as server, server.client() as client:
        assert client.models.list().data[0].max_model_len == 64  # type: ignore[attr-defined, unused-ignore]
        with pytest.raises(openai.BadRequestError, match="64 tokens") as caught:
            client.completions.create(model="tiny", prompt="A", max_tokens=64)
        assert caught.value.code == "context_length_exceeded"
        with pytest.raises(openai.BadRequestError, match="at most 4 answers"):
            client.completions.create(model="tiny", prompt="A", n=5)
        with pytest.raises(openai.BadRequestError, match="more than the 128"):
            client.completions.create(model="tiny", prompt=[5] * 10, max_tokens=40, n=3)
        most: list[float] = []
        held: list[float] = []
        done = threading.Event()

        def watch() -> None:
            while not done.is_set():
                most.append(server.metric("vllm:kv_cache_usage_perc"))
                held.append(server.metric("kaigen_chat_kv_cache_bytes"))

        watcher = threading.Thread(target=watch)
        watcher.start()
        with ThreadPoolExecutor(8) as pool:
            asked = {"model": "tiny", "prompt": [5] * 20, "max_tokens": 40, "extra_body": {"min_tokens": 40}}
            answers = list(pool.map(lambda _: client.completions.create(**asked), range(8)))
        done.set()
        watcher.join()
        assert all(answer.usage.completion_tokens == 40 for answer in answers)
        assert 0.2 < max(most) <= 1
        # 2 layers × keys and values × 2 heads × 16 numbers of 4 bytes.
        assert 0 < max(held) <= 128 * 512
        assert client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "A"}]).choices


def test_the_metrics_are_what_was_done(model: Path) -> None:
    with Server(model, "--threads", "1") as server, server.client() as client:
        answer = client.completions.create(model="tiny", prompt="Git says", max_tokens=7, extra_body={"min_tokens": 7})
        assert server.metric("vllm:prompt_tokens_total") == answer.usage.prompt_tokens
        assert server.metric("vllm:generation_tokens_total", model_name="tiny") == 7
        assert server.metric("vllm:request_success_total", finished_reason="length") == 1
        assert server.metric("vllm:time_to_first_token_seconds_count") == 1
        assert server.metric("vllm:inter_token_latency_seconds_count") == 6
        assert server.metric("vllm:e2e_request_latency_seconds_count") == 1
        assert server.metric(RUNNING) == server.metric(WAITING) == server.metric("vllm:kv_cache_usage_perc") == 0
        assert server.status("/v1/nothing") == 404
        counted = "kaigen_chat_http_requests_total"
        assert server.metric(counted, route="/v1/completions", code="200") == 1
        assert server.metric(counted, route="other", code="404") == 1


def test_a_port_in_use_is_reported_before_the_model_is_loaded(slow: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "kaigen_chat", "--model", str(slow), "--host", "127.0.0.1", "--port", port],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr == f"error: cannot listen on 127.0.0.1:{port} (--host, --port): Address already in use\n"


def test_dtype_template_and_name_follow_the_options(model: Path, tmp_path: Path) -> None:
    template = tmp_path / "template.jinja"
    template.write_text("{% for message in messages %}{{ message.content }}{{ more or '' }}{% endfor %}")
    flags = ["--threads", "1", "--dtype", "bfloat16", "--chat-template", str(template), "--served-model-name", "other"]
    with Server(model, *flags) as server, server.client() as client:
        assert "as bfloat16" in server.log
        asked = {"model": "other", "messages": [{"role": "user", "content": "Git says"}], "max_tokens": 5}
        plain = client.chat.completions.create(**asked)
        prompt = client.completions.create(model="other", prompt="Git says", max_tokens=1)
        assert plain.usage.prompt_tokens == prompt.usage.prompt_tokens
        longer = client.chat.completions.create(**asked, extra_body={"chat_template_kwargs": {"more": "!!"}})
        assert longer.usage.prompt_tokens > plain.usage.prompt_tokens
        with pytest.raises(openai.BadRequestError, match="cannot be called chat_template"):
            client.chat.completions.create(**asked, extra_body={"chat_template_kwargs": {"chat_template": "x"}})


def test_code_in_the_folder_runs_only_when_allowed(tmp_path: Path) -> None:
    made = tiny.make(tmp_path / "tiny")
    config = json.loads((made / "config.json").read_text())
    config["auto_map"] = {"AutoModelForCausalLM": "own.OwnForCausalLM"}
    (made / "config.json").write_text(json.dumps(config))
    (made / "own.py").write_text(
        "import sys\n"
        "from transformers import LlamaForCausalLM\n"
        "sys.stderr.write('code of the folder runs\\n')\n"
        "class OwnForCausalLM(LlamaForCausalLM):\n"
        "    pass\n"
    )
    with pytest.raises(AssertionError, match="Read that code, then allow it with --trust-remote-code"):
        Server(made, "--threads", "1")
    with Server(made, "--threads", "1", "--trust-remote-code", HF_HOME=str(tmp_path)) as server:
        assert "code of the folder runs" in server.log
        assert server.request("/v1/completions", b'{"prompt": "A", "max_tokens": 1}')[0] == 200


def test_a_model_that_is_not_plain_attention_is_refused_by_its_kind(model: Path, tmp_path: Path) -> None:
    made = tmp_path / "tiny"
    shutil.copytree(model, made)
    config = json.loads((made / "config.json").read_text())
    (made / "config.json").write_text(json.dumps(config | {"model_type": "t5"}))
    with pytest.raises(AssertionError, match="only decoders are served here"):
        Server(made, "--threads", "1")
