"""Judge a Topology: wait until it is rolled out, run a tool that asks it, compare what the tool measured.

    python3 gate.py PARAMS MODEL

PARAMS is a file of settings, MODEL the name of the model in requests. Variables: TARGET_URL is that of the Service,
TARGET_API_KEY its key, TARGET_WORKLOADS the paths of what runs the pods in the API, such as
`apis/apps/v1/deployments/assistant`, with commas, and KAIGEN_FACTS the name of the ConfigMap for the report.

The report goes to the ConfigMap, to the folder `output` of the settings, and as one line to the termination message.

Exit codes: 0 passed; 1 the tool failed, or the report cannot be stored; 2 wrong settings; 11 a requirement is not met;
20 the Topology was not ready in time.
"""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import json
import os
import random
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

FAILED, WRONG_SETTINGS, NOT_MET, NOT_READY = 1, 2, 11, 20

MESSAGE = os.environ.get("KAIGEN_MESSAGE", "/dev/termination-log")
ACCOUNT = os.environ.get("KAIGEN_ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount")
PAUSE = 2
"""Seconds between two looks at what is waited for."""
SETTLE = float(os.environ.get("KAIGEN_SETTLE", "10"))
"""Seconds after a rollout in which the Service may still reach pods that end: until each node knows its endpoints."""

PERCENTILES = ("50", "90", "95", "99")
LATENCIES = ("ttft", "tpot", "itl", "e2el")
_WORDS = ("river", "stone", "garden", "winter", "letter", "music", "bridge", "forest", "number", "silver", "morning")


class Failed(Exception):
    """The run ends without a measurement.

    Attributes:
        code: exit code of the program.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Api:
    """The API server, as a pod reaches it."""

    def __init__(self) -> None:
        host = os.environ["KUBERNETES_SERVICE_HOST"]
        host = f"[{host}]" if ":" in host else host
        port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        scheme = os.environ.get("KAIGEN_API_SCHEME", "https")
        self.url = f"{scheme}://{host}:{port}"
        self.namespace = _text(f"{ACCOUNT}/namespace")
        self.tls = _tls(f"{ACCOUNT}/ca.crt") if scheme == "https" else None

    def get(self, path: str) -> Any:
        """Return an object of the pod's namespace; None if there is none."""
        try:
            return self._call("GET", path, None)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def apply(self, path: str, body: Mapping[str, Any]) -> None:
        """Create an object, or change its fields."""
        self._call("PATCH", f"{path}?fieldManager=kaigen-gate&force=true", json.dumps(body).encode())

    def _call(self, method: str, path: str, data: bytes | None) -> Any:
        group, _, rest = path.rpartition("/")
        group, _, plural = group.rpartition("/")
        url = f"{self.url}/{group}/namespaces/{self.namespace}/{plural}/{rest}"
        headers = {
            "Authorization": f"Bearer {_text(f'{ACCOUNT}/token')}",
            "Content-Type": "application/apply-patch+yaml",
            "Accept": "application/json",
        }
        request = urllib.request.Request(url, data, headers, method=method)
        with _open(request, 30, self.tls) as answer:
            return json.load(answer)


def _tls(authority: str) -> ssl.SSLContext:
    # As kubectl and Go: Python 3.13 refuses authorities of clusters that lack extensions of RFC 5280.
    context = ssl.create_default_context(cafile=authority)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _open(request: urllib.request.Request, timeout: float, tls: ssl.SSLContext | None = None) -> Any:
    # Without the proxies of the environment: everything that is asked is in the cluster.
    handlers: list[Any] = [urllib.request.ProxyHandler({})]
    if tls is not None:
        handlers.append(urllib.request.HTTPSHandler(context=tls))
    return urllib.request.build_opener(*handlers).open(request, timeout=timeout)


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        return stream.read().strip()


def _key() -> str:
    """Return the API key of requests: the first line of those that the Topology accepts."""
    return os.environ.get("TARGET_API_KEY", "").strip().partition("\n")[0].strip()


def why_waiting(live: Any, expected: Sequence[Mapping[str, Any]]) -> str:
    """Return why a workload is not rolled out as Git has it; empty if it is.

    Args:
        live: the Deployment, StatefulSet or LeaderWorkerSet in the cluster; None if there is none.
        expected: name, image, command, arguments and plain variables of the containers that its pods have.
    """
    if live is None:
        return "is not in the cluster"
    spec, status = live["spec"], live.get("status", {})
    template = spec.get("template") or spec["leaderWorkerTemplate"]["leaderTemplate"]
    found = {each["name"]: each for each in template["spec"]["containers"]}
    for container in expected:
        if why := _difference(found.get(container["name"], {}), container):
            return why
    if status.get("observedGeneration", live["metadata"].get("generation")) != live["metadata"].get("generation"):
        return "waits for its controller"
    wanted = spec.get("replicas", 1)
    replicas, updated, ready = (status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas"))
    if not wanted:
        return "has no replicas"
    if not updated == replicas == wanted or ready < wanted:
        return f"has {ready} ready and {updated} updated replicas of {wanted}"
    return ""


def _difference(own: Mapping[str, Any], container: Mapping[str, Any]) -> str:
    """Return what of a container is not as Git has it; a webhook may add variables."""
    variables = {each["name"]: each.get("value", "") for each in own.get("env", ())}
    for field, value in container.items():
        if field == "env":
            name = next((each["name"] for each in value if variables.get(each["name"]) != each["value"]), None)
            if name is not None:
                return f"has another variable {name} of container {container['name']}: {variables.get(name)}"
        elif own.get(field) != value:
            return f"has another {field} of container {container['name']}: {_shorten(str(own.get(field)))}"
    return ""


def _why_no_answer(url: str) -> str:
    headers = {"Authorization": f"Bearer {key}"} if (key := _key()) else {}
    try:
        with _open(urllib.request.Request(f"{url}/v1/models", headers=headers), 10) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            raise Failed(WRONG_SETTINGS, f"{url} refuses the API key (HTTP {error.code})") from None
        return f"answers HTTP {error.code}"
    except (OSError, ValueError) as error:
        return f"does not answer: {error}"
    return ""


def wait(api: Api, params: Mapping[str, Any], url: str, workloads: Sequence[str]) -> None:
    """Wait until the pods are those of Git and the Service answers, and has no earlier pods behind it.

    Raises:
        Failed: the time is over.
    """
    target, said = params["target"], ""
    end, since = time.monotonic() + target["wait"], None
    while True:
        why = ""
        for path, containers in zip(workloads, target["containers"], strict=True):
            try:
                why = why_waiting(api.get(path), containers)
            except (OSError, ValueError) as error:
                why = f"cannot be read: {error}"
            if why:
                why = f"{path.rpartition('/')[2]} {why}"
                break
        why = why or _why_no_answer(url)
        if not why:
            since = time.monotonic() if since is None else since
            if time.monotonic() - since >= SETTLE:
                return
            time.sleep(min(PAUSE, SETTLE))
            continue
        since = None
        if why != said:
            print(f"waiting: {target['name']}: {why}", flush=True)
            said = why
        if time.monotonic() > end:
            raise Failed(NOT_READY, f"{target['name']} was not ready in {target['wait']} s: {why}")
        time.sleep(PAUSE)


_PANDAS = '''"""What `vllm bench serve` needs of pandas to read a file of prompts."""
import json


class Rows:
    def __init__(self, rows):
        self.columns = [*rows[0]] if rows else []
        self._rows = rows

    def iterrows(self):
        for number, row in enumerate(self._rows):
            yield number, Row(row)


class Row(dict):
    def to_dict(self):
        return dict(self)


def read_json(path_or_buf, lines):
    with open(path_or_buf, encoding="utf-8") as stream:
        return Rows([json.loads(line) for line in stream if line.strip()])
'''


def without_pandas(folder: str) -> dict[str, str]:
    """Return the variables with which vLLM's tool reads prompts although the image has no pandas.

    vLLM's images do not have the packages of its extra `bench` (docker/Dockerfile.cpu installs `[audio]` only), and
    `CustomDataset.load_data` in vllm/benchmarks/datasets/datasets.py (0.32.0) reads JSON lines by pandas.
    """
    if importlib.util.find_spec("pandas") is not None:
        return {}
    place = f"{folder}/pandas-lines"
    os.makedirs(place, exist_ok=True)
    with open(f"{place}/pandas.py", "w", encoding="utf-8") as stream:
        stream.write(_PANDAS)
    return {"PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), place)))}


def prompts(count: int, words: int) -> Iterator[str]:
    """Yield prompts of random words, the same ones in each run; none begins like another."""
    chance = random.Random(1)
    for number in range(count):
        yield f"{number} " + " ".join(chance.choice(_WORDS) for _ in range(words))


def benchmark(params: Mapping[str, Any], url: str, model: str, folder: str) -> dict[str, float]:
    """Run `vllm bench serve`; return what it measured: milliseconds, tokens and requests per second, and shares."""
    own, count, is_chat = params["benchmark"], params["benchmark"]["requests"], params["benchmark"]["api"] == "chat"
    path = own.get("input")
    if path is None:
        path = f"{folder}/prompts.jsonl"
        with open(path, "w", encoding="utf-8") as stream:
            stream.writelines(f"{json.dumps({'prompt': text})}\n" for text in prompts(count, own["promptWords"]))
    # The number of tokens is a field of the requests: with the option, vLLM's tool needs the model's tokenizer.
    body = {"max_completion_tokens" if is_chat else "max_tokens": own["outputTokens"], "temperature": 0}
    body |= {"ignore_eos": True} if own["ignoreEos"] else {}
    run_tool(
        [
            *("vllm", "bench", "serve", "--backend", "openai-chat" if is_chat else "openai"),
            *("--base-url", url, "--endpoint", "/v1/chat/completions" if is_chat else "/v1/completions"),
            *("--model", model, "--skip-tokenizer-init", "--dataset-name", "custom", "--dataset-path", path),
            *("--skip-chat-template", "--num-prompts", str(count), "--max-concurrency", str(own["concurrency"])),
            *(("--request-rate", str(own["rate"])) if "rate" in own else ()),
            *("--num-warmups", str(own["warmups"]), "--ready-check-timeout-sec", "0", "--extra-body", json.dumps(body)),
            *("--save-result", "--save-detailed", "--result-dir", folder, "--result-filename", "bench.json"),
            "--disable-tqdm",
        ],
        without_pandas(folder),
    )
    return benchmark_numbers(_json(f"{folder}/bench.json"), count)


def benchmark_numbers(found: Mapping[str, Any], count: int) -> dict[str, float]:
    """Return the numbers of a result of `vllm bench serve`.

    They are computed from the times of each request: without a tokenizer, the tool summarizes only the latency of
    whole requests (`benchmark` in vllm/benchmarks/serve.py, 0.32.0, whose definitions these are).

    Args:
        found: the result, with details.
        count: the number of requests.
    """
    numbers = {"errors": 1 - found["completed"] / count}
    if not found["completed"]:
        return numbers
    times: dict[str, list[float]] = {name: [] for name in LATENCIES}
    for first, steps, tokens in zip(found["ttfts"], found["itls"], found["output_lens"], strict=True):
        # A failed request has no tokens.
        if tokens:
            times["ttft"].append(first)
            times["tpot"] += [sum(steps) / (tokens - 1)] if tokens > 1 else []
            times["itl"] += steps
            times["e2el"].append(first + sum(steps))
    for name, values in times.items():
        # With one token for each request there are none between tokens.
        ordered = sorted(values or [0.0])
        numbers[f"{name}.mean"] = 1000 * sum(ordered) / len(ordered)
        numbers |= {f"{name}.p{each}": 1000 * percentile(ordered, int(each)) for each in PERCENTILES}
    return {**numbers, "throughput": found["output_throughput"], "requestThroughput": found["request_throughput"]}


def percentile(ordered: Sequence[float], share: int) -> float:
    """Return a percentile of sorted numbers, between two of them where it falls there, as numpy does."""
    at = (len(ordered) - 1) * share / 100
    low, high = ordered[int(at)], ordered[min(int(at) + 1, len(ordered) - 1)]
    return low + (high - low) * (at - int(at))


def evaluate(params: Mapping[str, Any], url: str, model: str, folder: str) -> dict[str, float]:
    """Run `lm_eval`; return the share of right answers by task."""
    own, is_chat = params["evaluate"], params["evaluate"]["api"] == "chat"
    arguments = {
        "model": model,
        "base_url": f"{url}/v1/chat/completions" if is_chat else f"{url}/v1/completions",
        "num_concurrent": own["concurrency"],
        "max_retries": 3,
        **({"tokenized_requests": False} if is_chat else {}),
    }
    run_tool(
        [
            *("lm_eval", "run", "--model", "local-chat-completions" if is_chat else "local-completions"),
            *("--model_args", json.dumps(arguments), "--tasks", ",".join(own["tasks"])),
            *(("--include_path", own["folder"]) if "folder" in own else ()),
            *(("--apply_chat_template",) if is_chat else ()),
            *(("--limit", str(own["limit"])) if "limit" in own else ()),
            *(("--num_fewshot", str(own["fewshot"])) if "fewshot" in own else ()),
            *(("--gen_kwargs", json.dumps(own["parameters"])) if own.get("parameters") else ()),
            *("--output_path", f"{folder}/results"),
        ]
    )
    paths = sorted(glob.glob(f"{folder}/results/**/results_*.json", recursive=True))
    if not paths:
        raise Failed(FAILED, "lm_eval wrote no results")
    results = _json(paths[-1])["results"]
    return {f"accuracy.{task}": accuracy(task, results.get(task, {}), own.get("metric")) for task in own["tasks"]}


def accuracy(task: str, found: Mapping[str, Any], metric: str | None) -> float:
    """Return the metric of a task that is its share of right answers.

    Args:
        task: name of the task.
        found: its results: `METRIC,FILTER` and a number.
        metric: `METRIC` or `METRIC,FILTER`; None for the only one of `exact_match` and `acc`.
    """
    wanted = ("exact_match", "acc") if metric is None else (metric,)
    known = {name: value for name, value in found.items() if isinstance(value, int | float)}
    chosen = {name: value for name, value in known.items() if name in wanted or name.partition(",")[0] in wanted}
    if len(chosen) != 1:
        listed = ", ".join(name for name in known if "_stderr" not in name and name != "sample_len")
        problem = f"has no metric {' or '.join(wanted)}" if not chosen else f"has several: {', '.join(chosen)}"
        raise Failed(WRONG_SETTINGS, f"task {task} {problem}; set evaluate.metric to one of: {listed or 'none'}")
    return float(*chosen.values())


def run_tool(command: Sequence[str], more: Mapping[str, str] | None = None) -> None:
    """Run a program, with more variables; what it prints is the log of the pod.

    Raises:
        Failed: it fails.
    """
    own = {"OPENAI_API_KEY": _key() or "EMPTY", **(more or {})}
    last: deque[str] = deque(maxlen=3)
    try:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **own},
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise Failed(WRONG_SETTINGS, f"{command[0]} is not in the image: {error}") from None
    assert process.stdout is not None
    try:
        for line in process.stdout:
            print(line, end="", flush=True)
            last.append(line.strip())
        code = process.wait()
    finally:
        if process.poll() is None:
            process.kill()
    if code != 0:
        raise Failed(FAILED, f"{command[0]} failed with exit code {code}: {_shorten(' '.join(last))}")


def checks(require: Mapping[str, Any], numbers: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return each requirement with what was measured, and whether it is met.

    Args:
        require: limits by name: numbers, with `max` or `min`.
        numbers: what was measured.
    """
    found = []
    for name, limits in require.items():
        for bound, limit in limits.items():
            names = [each for each in numbers if each == name or each.startswith(f"{name}.")]
            for each in names or [name]:
                value = numbers.get(each)
                passed = value is not None and (value <= limit if bound == "max" else value >= limit)
                found.append({"name": each, "bound": bound, "limit": limit, "value": value, "passed": passed})
    return found


def reason(found: Sequence[Mapping[str, Any]]) -> str:
    """Return why requirements are not met; empty if all are."""
    words = {"max": "more", "min": "less"}
    lines = []
    for each in found:
        if not each["passed"] and each["value"] is None:
            lines.append(f"{each['name']} was not measured")
        elif not each["passed"]:
            value, limit = (amount_text(each["name"], each[field]) for field in ("value", "limit"))
            lines.append(f"{each['name']} is {value}, {words[each['bound']]} than {limit}")
    return "; ".join(lines)


def amount_text(name: str, value: float) -> str:
    """Return a number with its unit."""
    number = f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
    unit = {"throughput": " tok/s", "requestThroughput": " req/s"}.get(name, "")
    return f"{number} ms" if name.partition(".")[0] in LATENCIES else f"{number}{unit}"


def report_text(report: Mapping[str, Any]) -> str:
    """Return a report as a short text."""
    state = "passed" if report["passed"] else "failed"
    lines = [f"### {report['gate']}: {state}", ""]
    if report["reason"]:
        lines += [report["reason"], ""]
    if report["checks"]:
        lines += ["| requirement | limit | measured | |", "|---|---|---|---|"]
    for each in report["checks"]:
        value = "-" if each["value"] is None else amount_text(each["name"], each["value"])
        limit = f"{each['bound']} {amount_text(each['name'], each['limit'])}"
        lines.append(f"| {each['name']} | {limit} | {value} | {'met' if each['passed'] else 'not met'} |")
    lines += ["", f"`{report['run']}` judged `{report['target']}` with {report['tool']}, {report['finished']}."]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def store(api: Api, report: Mapping[str, Any], facts: str, output: str | None) -> None:
    """Write a report to the ConfigMap, and to a folder."""
    files = {"report.json": json.dumps(report, indent=2) + "\n", "report.md": report_text(report)}
    data = {**_amounts(report), **files, "gate": "passed" if report["passed"] else "failed", "run": report["run"]}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": report["run"], "uid": os.environ.get("JOB_UID", "")}
    labels = {"app.kubernetes.io/managed-by": "kaigen", "app.kubernetes.io/instance": report["gate"]}
    metadata = {"name": facts, "labels": labels, "ownerReferences": [owner]}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    api.apply(f"api/v1/configmaps/{facts}", body)
    for name, text in files.items() if output else ():
        with open(f"{output}/{name}", "w", encoding="utf-8") as stream:
            stream.write(text)


TOOLS = {"benchmark": (benchmark, "vllm bench serve"), "evaluate": (evaluate, "lm-evaluation-harness")}


def judge(api: Api, params: Mapping[str, Any], url: str, model: str, workloads: Sequence[str]) -> tuple[int, Any]:
    """Wait, measure and compare; return the exit code and the report."""
    measure, tool = TOOLS[params["workload"]]
    report: dict[str, Any] = {
        "gate": os.environ.get("KAIGEN_APP", ""),
        "run": os.environ.get("JOB_NAME", ""),
        "target": params["target"]["name"],
        "tool": tool,
    }
    code, why, numbers, found = 0, "", {}, []
    try:
        wait(api, params, url, workloads)
        with tempfile.TemporaryDirectory() as folder:
            numbers = measure(params, url, model, folder)
        found = checks(params["require"], numbers)
        why = reason(found)
        code = NOT_MET if why else 0
    except Failed as error:
        code, why = error.code, str(error)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return code, {**report, "passed": not code, "reason": why, "checks": found, "measured": numbers, "finished": now}


def message(report: Mapping[str, Any]) -> str:
    """Return the termination message, which `kaigen status` shows."""
    why = {"error": _shorten(report["reason"])} if report["reason"] else {}
    return json.dumps({**why, "gate": "passed" if report["passed"] else "failed", **_amounts(report)})


def _amounts(report: Mapping[str, Any]) -> dict[str, str]:
    """Return what was measured of each requirement, at most 50 of them: a message has room for 4 kB."""
    known = [each for each in report["checks"] if each["value"] is not None]
    return {each["name"]: amount_text(each["name"], each["value"]) for each in known[:50]}


def _shorten(text: str) -> str:
    return text if len(text) <= 500 else f"{text[:500]}…"


def _json(path: str) -> Any:
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def stop(number: int, frame: object) -> None:
    """End the run."""
    raise Failed(128 + number, f"the pod was stopped by signal {number}")


def main(params: str, model: str) -> int:
    """Judge, store the report and leave a message; return the exit code."""
    signal.signal(signal.SIGTERM, stop)
    settings, api, facts = _json(params), Api(), os.environ["KAIGEN_FACTS"]
    workloads = [path for path in os.environ["TARGET_WORKLOADS"].split(",") if path]
    code, report = judge(api, settings, os.environ["TARGET_URL"], model, workloads)
    print(report_text(report), flush=True)
    text = message(report)
    try:
        store(api, report, facts, settings.get("output"))
    except OSError as error:
        code = code or FAILED
        text = json.dumps({"error": f"the report cannot be stored in ConfigMap {facts}: {error}; {report['reason']}"})
    with contextlib.suppress(OSError), open(MESSAGE, "w", encoding="utf-8") as stream:
        stream.write(text)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
