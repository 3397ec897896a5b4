"""Chains of specs, from builds to what is served: every gate is there, in any order of the files."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kaigen.config.load import load_config
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.run import compile_specs
from tests.strategies import examples

Object = dict[str, Any]
CONFIG = "apiVersion: kaigen.dev/v1alpha1\nkind: Config\nprofile: generic\n"
VOLUME = {"size": "1Gi", "accessModes": ["ReadWriteMany"], "storageClassName": "shared"}
BUILD = {
    "git": {"url": "https://github.com/acme/work.git", "commit": "7" * 40},
    "repository": "registry.example.com/acme/work",
}
COMPONENT = "app.kubernetes.io/component"


class Stage(NamedTuple):
    """How the files of one link of a chain are made.

    Attributes:
        kind: Model or Dataset.
        is_loader: whether a loader writes them, and not a Job.
        is_built: whether the image is built.
        is_uploaded: whether the Job uploads its output.
        in_bucket: whether they are stored in a bucket.
    """

    kind: str
    is_loader: bool
    is_built: bool
    is_uploaded: bool
    in_bucket: bool


STAGES = st.lists(
    st.builds(Stage, st.sampled_from(("Model", "Dataset")), st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    min_size=1,
    max_size=4,
).map(lambda stages: [*stages[:-1], stages[-1]._replace(kind="Model")])


def document(kind: str, name: str, **spec: Any) -> Object:
    return {"apiVersion": "kaigen.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def files(number: int) -> str:
    return f"files-{number}"


def worker(stage: Stage, number: int) -> str:
    return f"{files(number)}-load" if stage.is_loader else f"work-{number}"


def documents(stages: Sequence[Stage], first: str = "") -> list[Object]:
    """Return the specs of a chain, in its order.

    Args:
        stages: the links; each reads the files of the one before.
        first: name of a Model that the first one reads; empty for none.
    """
    found: list[Object] = []
    before = ("Model", first) if first else None
    for number, stage in enumerate(stages):
        image: Object = {"build": BUILD} if stage.is_built else {"image": f"work:{number}"}
        place: Object = {"volume": VOLUME}
        if stage.in_bucket:
            place = {"bucket": {"uri": f"s3://acme/stored/{number}"}}
        if stage.is_loader:
            read = {before[0].lower(): before[1]} if before else {}
            source: Object = {"loader": {**image, **read, "volume": VOLUME}}
        else:
            output: Object = {"volume": VOLUME}
            if stage.is_uploaded:
                output["bucket"] = {"uri": f"s3://acme/results/{number}"}
            name = worker(stage, number)
            found.append(document("Job", name, **image, **_inputs(before), output=output))
            source = {"job": {"name": name}}
        found.append(document(stage.kind, files(number), source=source, store=place))
        before = (stage.kind, files(number))
    return [*found, document("Topology", "chat", engine="transformers", model=files(len(stages) - 1))]


def _inputs(before: tuple[str, str] | None) -> Object:
    if before is None:
        return {}
    return {"model": before[1]} if before[0] == "Model" else {"inputs": [{"dataset": before[1]}]}


class Step(NamedTuple):
    """A workload of a chain: its app and its component."""

    app: str
    component: str


def steps(stages: Sequence[Stage]) -> list[tuple[Step, Step]]:
    """Return each step with one that it must wait for."""
    found: list[tuple[Step, Step]] = []
    last: Step | None = None
    for number, stage in enumerate(stages):
        app = worker(stage, number)
        run, stored = Step(app, "run"), Step(files(number), "download")
        found += [(run, last)] if last else []
        found += [(run, Step(app, "build"))] if stage.is_built else []
        written = run
        if stage.is_uploaded and not stage.is_loader:
            written = Step(app, "upload")
            found.append((written, run))
        found.append((stored, written))
        last = stored
    assert last is not None
    return [*found, (Step("chat", "serve"), last)]


class Workload(NamedTuple):
    """What a workload waits for and writes: Jobs by name, files by identity."""

    wave: int
    name: str
    awaits: frozenset[str]
    writes: frozenset[str]


class Rendered(NamedTuple):
    """The workloads of a run, and all objects by app."""

    workloads: dict[Step, Workload]
    objects: dict[str, list[Object]]


def rendered(groups: Sequence[Sequence[Object]]) -> Rendered:
    """Return what documents become, each group in a file of its own."""
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "specs").mkdir()
        (folder / "kaigen.yaml").write_text(CONFIG, encoding="utf-8")
        for number, group in enumerate(groups):
            (folder / f"specs/{number}.yaml").write_text(yaml.safe_dump_all(group), encoding="utf-8")
        config = load_config(folder)
        found = compile_specs((), config).apps
    finally:
        shutil.rmtree(folder)
    workloads = {}
    for item in found:
        for each in item.objects:
            if "template" in each.body.get("spec", {}):
                component = each.body["metadata"]["labels"][COMPONENT]
                workloads[Step(item.app.name, component)] = _workload(each.body, each.object.wave)
    return Rendered(workloads, {item.app.name: [each.body for each in item.objects] for item in found})


def _workload(body: Object, wave: int) -> Workload:
    pod = body["spec"]["template"]["spec"]
    awaits, writes = set(), set()
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        words = [word for word in container.get("args", []) if isinstance(word, str)]
        options = dict(word.partition("=")[::2] for word in words if word.startswith("--"))
        match words[:1]:
            case ["wait-job"]:
                awaits.add(options["--name"])
            case ["wait"]:
                awaits.add(options["--identity"])
            case ["fetch"] | ["put"]:
                writes.add(options["--identity"])
    return Workload(wave, body["metadata"]["name"], frozenset(awaits), frozenset(writes))


def problems(groups: Sequence[Sequence[Object]]) -> Iterator[tuple[Diagnostic, str]]:
    """Yield the errors of documents, each with the text of its line."""
    text = [yaml.safe_dump_all(group).splitlines() for group in groups]
    try:
        rendered(groups)
    except InputError as error:
        for item in error.diagnostics:
            assert item.mark is not None
            number = int(Path(item.mark.file).stem)
            yield item, text[number][item.mark.line - 1]


def grouped(data: st.DataObject, made: Sequence[Object]) -> list[list[Object]]:
    """Return documents in any order, in any number of files."""
    found: list[list[Object]] = [[]]
    order: list[Object] = data.draw(st.permutations(list(made)))
    starts: list[bool] = data.draw(st.lists(st.booleans(), min_size=len(made), max_size=len(made)))
    for each, is_first in zip(order, starts, strict=True):
        if found[-1] and is_first:
            found.append([])
        found[-1].append(each)
    return found


@settings(max_examples=examples(40))
@given(st.data(), STAGES)
def test_every_step_waits_for_the_one_before_in_any_order_of_the_files(
    data: st.DataObject, stages: list[Stage]
) -> None:
    made = documents(stages)
    found = rendered(grouped(data, made))
    for later, earlier in steps(stages):
        after, before = found.workloads[later], found.workloads[earlier]
        assert after.awaits & {before.name, *before.writes}, f"{later} does not wait for {earlier}"
        # Argo CD starts a wave when those before are healthy.
        assert before.wave <= after.wave, f"{later} is in an earlier wave than {earlier}"
    known = {each for item in found.workloads.values() for each in (item.name, *item.writes)}
    assert {each for item in found.workloads.values() for each in item.awaits} <= known
    assert found.objects == rendered([made]).objects


@settings(max_examples=25)
@given(st.data(), STAGES)
def test_a_circle_is_an_error_of_every_model_in_it(data: st.DataObject, stages: list[Stage]) -> None:
    made = documents(stages, first=files(len(stages) - 1))
    found = list(problems(grouped(data, made)))
    circles = [(item, line) for item, line in found if item.code == "KG0388"]
    assert len(circles) == len(stages)
    for item, _ in circles:
        assert item.message.endswith("wait for each other")
        assert all(files(number) in item.message for number in range(len(stages)))
    # A Job in the circle has no run, so what reads its output has none to wait for either.
    others = [item.message for item, _ in found if item.code != "KG0388"]
    assert all("has errors, so its run is unknown" in message for message in others)


@settings(max_examples=25)
@given(st.data(), STAGES)
def test_a_wrong_name_is_an_error_at_its_line_with_the_right_one(data: st.DataObject, stages: list[Stage]) -> None:
    made = documents(stages)
    number = data.draw(st.integers(0, len(made) - 1).filter(lambda index: _references(made[index])))
    spec, key, name = data.draw(st.sampled_from(_references(made[number])))
    wrong = name.replace("-", "--")
    spec[key] = wrong
    found = list(problems(grouped(data, made)))
    unknown = [(item, line) for item, line in found if item.message.startswith("unknown ")]
    assert [(item.code, item.hint) for item, _ in unknown] == [("KG0301", f"did you mean `{name}`?")]
    assert all(re.search(rf": {wrong}$", line) for _, line in unknown)
    others = [item.message for item, _ in found if not item.message.startswith("unknown ")]
    assert all("has errors, so its run is unknown" in message for message in others)


def _references(made: Object) -> list[tuple[Object, str, str]]:
    """Return the fields of a document that name another one: the mapping, the key and the name."""
    spec = made["spec"]
    source = spec.get("source", {})
    blocks = [spec, *spec.get("inputs", []), source.get("job", {}), source.get("loader", {})]
    return [
        (block, key, block[key])
        for block in blocks
        for key in ("model", "dataset", "name")
        if isinstance(block.get(key), str)
    ]
