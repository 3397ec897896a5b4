"""Templates and patches that need too much end with a diagnostic at their line; everything else is still checked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import msgspec
import pytest

from kaigen.extend import process
from tests.unit.extend.repository import HEAD, KIND, SCHEMA, SPEC
from tests.unit.security.hostile import CONFIG, JOB, Repository

PROBE = "tests.unit.security.probe_process"
TEMPLATE = "kinds/thing/templates/object.yaml.jinja"
LONG_TEXT = "{% set half = '" + "f" * 900 + "' %}\n" + "{% set half = half ~ half %}\n" * 9
"""10 lines; a text of 460,800 characters."""
LONG = LONG_TEXT + "{% set text = half ~ half %}\n"
PARTS = ", ".join(["text.split('f')"] * 400)

TOO_LONG = {
    "one operation on large numbers": LONG
    + "{% set m = half|int(0, 16) %}{% set n = text|int(0, 16) %}\n"
    + "{% for i in range(9999) %}\n{% set r = n % m %}{% endfor %}\n",
    "many long lists": LONG + "\n{% for i in range(99999) %}\n{% set y = text.split('f') %}{% endfor %}\n",
    "counting": LONG + "\n{% for i in range(99999) %}\n{% set y = text.count('fffff') %}{% endfor %}\n",
}
TOO_LARGE = {
    "lists": LONG + "{% set y = [" + PARTS + "] %}\n",
    "a block that doubles": "{% set a %}xxxxxxxx{% endset %}\n" * 11
    + "".join("{% set a %}{{ a }}{{ a }}{% endset %}" for _ in range(60)),
}


@pytest.fixture(autouse=True)
def _new_processes() -> Iterator[None]:
    """End the processes of other tests, and those of this one."""
    for module in (process.TEMPLATES, process.PATCHES, PROBE):
        process.forget(module)
    yield
    for module in (process.TEMPLATES, process.PATCHES, PROBE):
        process.forget(module)


def hostile(repository: Repository, body: str, **files: str) -> None:
    """Write a kind with a template, a document of it, and a Job with an error."""
    repository.write(
        {
            "kaigen.yaml": CONFIG + "kinds: [kinds]\n",
            "kinds/thing/kind.yaml": KIND,
            "kinds/thing/schema.yaml": SCHEMA,
            TEMPLATE: body + HEAD + "  a: b\n",
            "specs/one.yaml": SPEC,
            "specs/evaluate.yaml": JOB + "  imagee: x\n",
            **files,
        }
    )


@pytest.mark.parametrize("attack", TOO_LONG)
def test_a_template_that_takes_too_long_is_stopped_at_its_line(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, attack: str
) -> None:
    monkeypatch.setenv("KAIGEN_EXTENSION_TIME_LIMIT", "1")
    hostile(repository, TOO_LONG[attack])
    begin = time.monotonic()
    done = repository.kaigen("render")
    assert time.monotonic() - begin < 60
    assert done.code == 2, done.text
    # Line 13 is the loop itself. 1 second of processor time, or 3 by the clock on a machine that is busy.
    message = r"error\[KG1012\]: the template took more than [13] s and was stopped"
    assert re.search(rf"^{re.escape(TEMPLATE)}:1[34]:1: {message}$", done.err, re.MULTILINE), done.err
    assert "= hint: set KAIGEN_EXTENSION_TIME_LIMIT to more seconds, or to 0 for no limit\n" in done.err
    assert "specs/evaluate.yaml:8:3: error[KG0201]" in done.err
    assert not (repository.folder / "rendered").exists()


@pytest.mark.parametrize("attack", TOO_LARGE)
def test_a_template_that_needs_too_much_memory_is_stopped_at_its_line(repository: Repository, attack: str) -> None:
    hostile(repository, TOO_LARGE[attack])
    done = repository.kaigen("validate")
    assert done.code == 2, done.text
    where = f"{TEMPLATE}:12:1: error[KG1012]"
    assert f"{where}: the template needed more than 512 MiB of memory and was stopped\n" in done.err
    assert "= hint: set KAIGEN_EXTENSION_MEMORY_LIMIT to more MiB, or to 0 for no limit\n" in done.err
    assert "specs/evaluate.yaml:8:3: error[KG0201]" in done.err


@pytest.mark.parametrize(
    "body",
    [
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}\n",
        "{% include 'object.yaml.jinja' %}\n",
        "{% macro m(x) %}{{ m([x, x]) }}{% endmacro %}{{ m(1) }}\n",
        "a: {{ 0x" + "f" * 9000 + " }}\n",
        "a: {{ " + "9" * 9000 + " }}\n",
        "a: {{ 0x" + "f" * 9000 + " ~ '' }}\n",
        "a: {{ 2 ** 64 ** 64 ** 64 }}\n",
        "a: {{ '%999999999d' % 1 }}\n",
        "a: {{ 'x'.center(999999999) }}\n",
        "a: {{ 'x'.ljust(999999999) }}\n",
        "a: {{ '{:999999999}'.format(1) }}\n",
        "a: {{ range(100000)|sum ** 99 }}\n",
        'a: {{ "\\ud800" }}\n',
        "{% set x = 'ab' %}" + "{% set x %}{{ [x, x] }}{% endset %}" * 60 + "a: {{ x }}\n",
        "{% set x = 'ab' %}" + "{% set x %}{{ [x ~ 1, x ~ 2] }}{% endset %}" * 60 + "a: {{ x }}\n",
        LONG + "{% set m %}{{ text }}{% endset %}a: {% for i in range(9999) %}{{ m }}{% endfor %}\n\n",
    ],
)
def test_other_attacks_end_at_once(repository: Repository, body: str) -> None:
    hostile(repository, body)
    begin = time.monotonic()
    done = repository.kaigen("validate")
    assert time.monotonic() - begin < 60
    assert (done.code, f"{TEMPLATE}:" in done.err) == (2, True), done.text
    assert "Traceback" not in done.text
    assert "specs/evaluate.yaml:8:3: error[KG0201]" in done.err


def test_a_second_kind_is_rendered_after_one_that_was_stopped(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAIGEN_EXTENSION_TIME_LIMIT", "1")
    many = {f"specs/one-{number}.yaml": SPEC.replace("one", f"one-{number}") for number in range(5)}
    other = {
        "kinds/other/kind.yaml": KIND.replace("Thing", "Other"),
        "kinds/other/schema.yaml": SCHEMA,
        "kinds/other/templates/map.yaml.jinja": HEAD + "  a: {{ spec.txt }}\n",
        "specs/other.yaml": SPEC.replace("Thing", "Other").replace("one", "other"),
    }
    hostile(repository, TOO_LONG["many long lists"], **many, **other)
    begin = time.monotonic()
    done = repository.kaigen("validate")
    assert time.monotonic() - begin < 40, "the kind is stopped once, not for each of its documents"
    assert done.err.count("KG1012") == 1, done.text
    assert "kinds/other/templates/map.yaml.jinja:6:14: error[KG1005]: unknown field `txt`" in done.err


def test_a_raised_limit_takes_effect(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    body = LONG + "{% set y = [" + ", ".join(["text.split('f')"] * 30) + "] %}\n"
    hostile(repository, body)
    repository.write({"specs/evaluate.yaml": JOB})
    monkeypatch.setenv("KAIGEN_EXTENSION_MEMORY_LIMIT", "128")
    done = repository.kaigen("render")
    assert (done.code, "needed more than 128 MiB" in done.err) == (2, True), done.text
    monkeypatch.setenv("KAIGEN_EXTENSION_MEMORY_LIMIT", "0")
    assert repository.kaigen("render").code == 0
    assert "specs/one.yaml" not in repository.kaigen("render").text


DOUBLING = "".join(f"  - {{op: copy, from: /data, path: /data/x{number}}}\n" for number in range(60))


@pytest.mark.parametrize("limit", ["KAIGEN_EXTENSION_TIME_LIMIT", "KAIGEN_EXTENSION_MEMORY_LIMIT"])
def test_a_patch_that_grows_without_end_is_stopped_at_its_operation(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setenv("KAIGEN_EXTENSION_TIME_LIMIT", "0")
    monkeypatch.setenv("KAIGEN_EXTENSION_MEMORY_LIMIT", "0")
    monkeypatch.setenv(limit, {"KAIGEN_EXTENSION_TIME_LIMIT": "1"}.get(limit, "200"))
    hostile(repository, "")
    patches = f"patches:\n- target: {{app: one, kind: ConfigMap}}\n  patch:\n{DOUBLING}"
    repository.write({"kaigen.yaml": CONFIG + "kinds: [kinds]\n" + patches})
    begin = time.monotonic()
    done = repository.kaigen("render")
    assert time.monotonic() - begin < 60
    assert done.code == 2, done.text
    (line,) = [line for line in done.err.splitlines() if "KG1012" in line]
    place = line.split(":")
    assert place[0] == "kaigen.yaml"
    assert 14 < int(place[1]) < 50
    assert ("took more than" in line) is (limit == "KAIGEN_EXTENSION_TIME_LIMIT"), line
    assert f"set {limit} to more" in done.err
    assert "specs/evaluate.yaml:8:3: error[KG0201]" in done.err


def test_a_patch_that_nests_without_end_is_an_error(repository: Repository) -> None:
    hostile(repository, "")
    nest = "".join(f"  - {{op: copy, from: /data, path: '/data{'/x' * 2**n}'}}\n" for n in range(9))
    patches = f"patches:\n- target: {{app: one, kind: ConfigMap}}\n  patch:\n{nest}"
    repository.write({"kaigen.yaml": CONFIG + "kinds: [kinds]\n" + patches})
    done = repository.kaigen("render")
    assert (done.code, "Traceback" in done.text) == (2, False), done.text
    assert "error[KG10" in done.err


@pytest.mark.parametrize(
    ("action", "result"),
    [
        ("read a file", "OSError"),
        ("write a file", "OSError"),
        ("open a socket", "OSError"),
        ("environment", []),
        ("descriptors", [0, 1, 2]),
        ("folder", "/"),
    ],
)
def test_a_process_has_nothing_of_the_machine(monkeypatch: pytest.MonkeyPatch, action: str, result: object) -> None:
    monkeypatch.setenv("KAIGEN_GITHUB_TOKEN", "secret")
    with open(os.devnull, "rb") as inherited:
        os.set_inheritable(inherited.fileno(), True)
        found = msgspec.json.decode(process.ask(PROBE, action.encode()))
    if action == "environment":
        found = [name for name in found if name != "LC_CTYPE"]  # Python sets it itself
    assert found == result


@pytest.mark.skipif(os.getuid() == 0, reason="the kernel does not limit processes of root")
def test_a_process_starts_no_other() -> None:
    assert msgspec.json.decode(process.ask(PROBE, b"start a thread")) == "RuntimeError"


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("sleep", "took more than 3 s and was stopped"),
        ("sleep deaf", "took more than 3 s and was stopped"),
        ("crash", "ended its process by signal 11"),
        ("exhaust memory", "needed more than 512 MiB of memory and was stopped"),
        ("answer too much", "produced more than 32 MiB and was stopped"),
    ],
)
def test_a_process_that_stops_answering_is_replaced(monkeypatch: pytest.MonkeyPatch, action: str, message: str) -> None:
    monkeypatch.setenv("KAIGEN_EXTENSION_TIME_LIMIT", "1")
    with pytest.raises(process.Stopped, match=message) as stopped:
        process.ask(PROBE, action.encode())
    assert stopped.value.place == 7
    assert process.ask(PROBE, b"nothing") == b"null"


def test_processor_time_is_counted_for_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIGEN_EXTENSION_TIME_LIMIT", "1")
    for _ in range(60):
        process.ask(PROBE, b"descriptors")
    assert process.ask(PROBE, b"nothing") == b"null"


@pytest.mark.parametrize("variable", ["KAIGEN_EXTENSION_TIME_LIMIT", "KAIGEN_EXTENSION_MEMORY_LIMIT"])
def test_a_limit_that_is_no_number_is_an_error(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "1G")
    done = repository.kaigen("validate")
    assert (done.code, done.err) == (2, f"error: {variable} is a whole number, not '1G'\n")


def test_every_process_of_a_large_run_has_its_own(repository: Repository) -> None:
    hostile(repository, "")
    many = {f"specs/{n}.yaml": SPEC.replace("one", f"one-{n}") for n in range(250)}
    patches = "patches:\n- target: {app: '*', kind: ConfigMap}\n  patch: {data: {more: x}}\n"
    repository.write({"specs/evaluate.yaml": JOB, "kaigen.yaml": CONFIG + "kinds: [kinds]\n" + patches, **many})
    done = subprocess.run(
        [sys.executable, "-c", "from kaigen.cli import main; main(['render'])"],
        cwd=repository.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written = list((repository.folder / "rendered").rglob("manifests/object.yaml"))
    assert len(written) == 251
    assert all("more: x" in path.read_text(encoding="utf-8") for path in written)
