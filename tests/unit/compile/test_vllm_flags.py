"""Flags of `engineArgs` are those of the engine's version, and lists become what the flag takes."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.engines import engine_facts
from kaigen.catalog.presets import presets
from kaigen.catalog.vllm_flags import environment_of, flags_of, has_metric, known_versions, minor_of, nearest_version
from kaigen.compile.engines.vllm import Vllm
from kaigen.compile.engines.vllm_flags import Given, check_flags, problem_of, unregistered_problem
from kaigen.compile.problems import Problems
from kaigen.diagnostics.diagnostic import Severity
from tests.rendered_flags import command_lines
from tests.unit.compile.specs import problem_paths, topology
from tests.unit.compile.topologies import HUB, args

NEWEST = known_versions()[-1]


def found(engine_args: Any, version: tuple[int, ...] | None = NEWEST) -> list[tuple[str, str, Severity]]:
    """Return code, message and severity of what is wrong with flags."""
    problems = Problems()
    check_flags(topology(model=HUB, engineArgs=engine_args).spec, version, problems)
    return [(item.code, item.message, item.severity) for item in problems.items]


def messages(engine_args: Any, version: tuple[int, ...] | None = NEWEST) -> list[str]:
    return [message for _, message, _ in found(engine_args, version)]


@pytest.mark.parametrize("flag", ["swap-space", "num-scheduler-steps", "task", "device", "nonexistent-flag"])
def test_a_flag_that_the_version_does_not_have_is_an_error(flag: str) -> None:
    ((code, message, severity),) = found({flag: 4})
    assert (code, severity) == ("KG0361", Severity.ERROR)
    assert message.startswith(f"vLLM 0.33 has no flag `--{flag}`")
    assert [code for code, _, _ in found([f"--{flag}=4"])] == ["KG0361"]


def test_the_version_that_still_had_a_flag_is_named() -> None:
    (gone,) = messages({"max-num-partial-prefills": 4})
    assert gone.startswith("vLLM 0.33 has no flag `--max-num-partial-prefills`, and does not start with it; 0.")
    assert gone.endswith(" still had it")
    (later,) = messages({"watchdog-config": {}}, (0, 32, 0))
    assert later.endswith("; it is in 0.33 and later")


def test_the_nearest_flag_is_suggested() -> None:
    problems = Problems()
    check_flags(topology(model=HUB, engineArgs={"enable-prefix-cachin": True}).spec, NEWEST, problems)
    assert [item.hint for item in problems.items] == ["did you mean `--enable-prefix-caching`?"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"block-size": "large"}, "`--block-size` requires a whole number"),
        ({"gpu-memory-utilization": "most"}, "`--gpu-memory-utilization` requires a number"),
        ({"dtype": "bfloat17"}, "`--dtype` does not accept `bfloat17`: did you mean `bfloat16`?"),
        ({"enable-prefix-caching": 3}, "`--enable-prefix-caching` is a switch: use true or false, not 3"),
        ({"dtype": True}, "`--dtype` requires a value"),
        ({"speculative-config": "{"}, "`--speculative-config` requires JSON, not `{`"),
    ],
)
def test_a_value_of_another_type_is_an_error(flags: Any, message: str) -> None:
    ((_, said, severity),) = found(flags)
    assert said.startswith(message)
    assert severity is Severity.ERROR


@pytest.mark.parametrize("method", ["nonsense", "int8"])
def test_a_quantization_that_the_version_does_not_have_is_an_error(method: str) -> None:
    problems = Problems()
    check_flags(topology(model=HUB, quantization=method).spec, NEWEST, problems)
    ((code, path),) = [(item.code, item.path) for item in problems.items]
    assert (code, path) == ("KG0361", ("spec", "quantization"))


@pytest.mark.parametrize(
    "flags",
    [
        {"max-num-batched-tokens": 8192, "enable-prefix-caching": False, "async-scheduling": True},
        {"compilation-config": {"cudagraph_mode": "NONE"}, "compilation-config.level": 3},
        {"max-num-batched-tokens": "8k"},
        ["--enable-prefix-caching", "--max-num-batched-tokens", "8192", "--no-enable-prefix-caching"],
    ],
)
def test_what_the_version_accepts_is_no_problem(flags: Any) -> None:
    assert found(flags) == []


def test_a_deprecated_flag_is_a_warning() -> None:
    deprecated = [name for name, flag in flags_of(NEWEST).items() if flag.deprecated and not flag.type]
    assert deprecated
    assert [severity for _, _, severity in found({deprecated[0]: True})] == [Severity.WARNING]


def test_an_unknown_version_is_a_warning_and_so_is_what_does_not_match() -> None:
    for version in (None, (0, 34, 0), (0, 9)):
        severities = {severity for _, _, severity in found({"swap-space": 4}, version)}
        assert severities == {Severity.WARNING}
        assert found({"swap-space": 4}, version)[0][0] == "KG0362"
    assert found({"max-num-partial-prefills": 4}, (0, 25, 1)) == []


@pytest.mark.parametrize(
    ("flag", "successor"),
    [
        ("rope-scaling", "hf-overrides"),
        ("rope_theta", "hf-overrides"),
        ("guided-decoding-backend", "structured-outputs"),
    ],
)
def test_the_hint_names_what_replaces_a_removed_flag(flag: str, successor: str) -> None:
    problems = Problems()
    check_flags(topology(model=HUB, engineArgs={flag: "x"}).spec, NEWEST, problems)
    assert [item.hint.startswith(f"use `{successor}") for item in problems.items] == [True]


def test_an_image_of_an_unknown_version_gets_no_recent_flags_and_a_warning() -> None:
    for image in ("acme/vllm:latest", "nvcr.io/nvidia/vllm:25.09-py3", f"acme/vllm@sha256:{'0' * 64}"):
        block = topology(model=HUB, image=image)
        assert "--shutdown-timeout=20" not in args(block)
        assert problem_paths(block) == [("KG0362", "spec.image")]
    for image in ("acme/vllm:v0.19.0", "rocm/vllm:rocm7.1_vllm_0.19.0_20260312"):
        assert "--shutdown-timeout=20" in args(topology(model=HUB, image=image))
    old = topology(model=HUB, image="vllm/vllm-openai:v0.8.5.post1")
    assert "--shutdown-timeout=20" not in args(old)
    assert problem_paths(old) == []
    assert "--shutdown-timeout=20" in args(topology(model=HUB, image="acme/vllm:latest", engineVersion="0.19"))


@pytest.mark.parametrize("minor", range(10, 34))
def test_every_minor_version_since_0_10_is_known(minor: int) -> None:
    assert found({"max-model-len": 8192, "tensor-parallel-size": 2}, (0, minor)) == []
    ((code, _, severity),) = found({"nonexistent-flag": 4}, (0, minor))
    assert (code, severity) == ("KG0361", Severity.ERROR)


@pytest.mark.parametrize(
    ("name", "hints"),
    [
        ("VLLM_LOGING_LEVEL", ["did you mean `VLLM_LOGGING_LEVEL`?"]),
        ("VLLM_SOMETHING_ELSE_ENTIRELY", ["delete it, unless a plugin reads it"]),
        ("VLLM_LOGGING_LEVEL", []),
        ("HF_HUB_OFFLINE", []),
    ],
)
def test_a_variable_that_the_version_does_not_read_is_a_warning(name: str, hints: list[str]) -> None:
    problems = Problems()
    check_flags(topology(model=HUB, env={name: "1"}).spec, NEWEST, problems)
    assert [item.hint for item in problems.items] == hints
    assert all((item.code, item.severity) == ("KG0361", Severity.WARNING) for item in problems.items)


def test_the_facts_about_the_engine_are_those_of_its_versions() -> None:
    facts = engine_facts("vllm")
    for flag, since in facts.flags.items():
        assert since == next(version for version in known_versions() if flag in flags_of(version))
    assert facts.fits_context_since == next(
        version for version in known_versions() if "auto" in flags_of(version)["max-model-len"].words
    )
    native = next(support.since for support in facts.node_support if support.native)
    assert "nnodes" in flags_of(native)
    # Requests are counted by a library that all versions have.
    own = [name for name in (facts.metrics or {}).values() if name.startswith("vllm:")]
    assert all(has_metric(name, NEWEST) for name in [*own, *facts.drain_metrics])
    variables = {name for preset in presets(BUILT_IN) for name in preset.engine.env or {}}
    assert variables <= set(environment_of(NEWEST))


def test_the_pinned_version_is_known() -> None:
    lines = args(topology(model=HUB, engineArgs={"enable-prefix-caching": True}))
    assert "--enable-prefix-caching" in lines
    assert nearest_version(None) == NEWEST


def test_lists_become_what_each_flag_takes() -> None:
    lists = {"allowed-origins": ["*"], "middleware": ["a.b", "c.d"], "cudagraph-capture-sizes": [1, 2]}
    given = args(topology(model=HUB, engineArgs=lists))
    assert '--allowed-origins=["*"]' in given
    assert [argument for argument in given if argument.startswith("--middleware")] == [
        "--middleware=kaigen_connections.Connections",
        "--middleware=a.b",
        "--middleware=c.d",
    ]
    start = given.index("--cudagraph-capture-sizes")
    assert given[start + 1 : start + 3] == ["1", "2"]


def test_every_flag_that_kaigen_renders_is_one_of_the_pinned_version() -> None:
    lines = command_lines()
    assert len(lines) > 140
    wrong = []
    for line in lines:
        for argument in line[1:]:
            if not argument.startswith("--"):
                continue
            name, equals, value = argument.removeprefix("--").partition("=")
            problem = problem_of(Given(name, value if equals else True, ()), NEWEST)
            if problem is None and equals:
                problem = unregistered_problem(Given(name, value, ()), NEWEST)
            # A flag without `=` takes the arguments after it.
            if problem is not None and (equals or "requires a value" not in problem.message):
                wrong.append(f"{argument}: {problem.message}")
    assert wrong == []


@pytest.mark.parametrize(
    ("flag", "name", "hint"),
    [
        ("tool-call-parser", "hermess", "did you mean `hermes`?"),
        ("tool-call-parser", "qwen3-coder", "did you mean `qwen3_coder`?"),
        ("reasoning-parser", "deepseek_r2", "did you mean `deepseek_r1`?"),
        ("load-format", "safetensor", "did you mean `safetensors`?"),
    ],
)
def test_a_parser_that_the_version_does_not_register_is_an_error(flag: str, name: str, hint: str) -> None:
    problems = Problems()
    check_flags(topology(model=HUB, engineArgs={flag: name}).spec, NEWEST, problems)
    ((message, said, severity),) = [(item.message, item.hint, item.severity) for item in problems.items]
    assert message == f"vLLM 0.33 does not have `{name}` for `--{flag}`"
    assert (said, severity) == (hint, Severity.ERROR)


def test_a_parser_may_come_from_a_plugin() -> None:
    assert found({"tool-call-parser": "ours", "tool-parser-plugin": "/plugins/ours.py"}) == []
    problems = Problems()
    own = topology(model=HUB, image="ours/vllm:0.33.0", engineArgs={"tool-call-parser": "ours"})
    check_flags(own.spec, NEWEST, problems)
    assert [item.severity for item in problems.items] == [Severity.WARNING]


def test_every_parser_of_the_catalogue_is_registered_by_the_pinned_version() -> None:
    engine = Vllm()
    flags = [
        Given(name, value, (preset.name,))
        for preset in presets(BUILT_IN)
        for name, value in engine.preset_flags(preset, templates="/examples").items()
    ]
    assert [unregistered_problem(flag, NEWEST) for flag in flags if unregistered_problem(flag, NEWEST)] == []
    assert {"tool-call-parser", "reasoning-parser", "tokenizer-mode"} <= {flag.name for flag in flags}


def test_minor_versions_are_compared() -> None:
    assert minor_of((0, 33, 1)) == (0, 33)
    assert found({"enable-prefix-caching": True}, (0, 33, 1)) == []
