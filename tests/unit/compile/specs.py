"""Specs of the tests in this folder, and functions that compile them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from kaigen.catalog.profiles import get_profile
from kaigen.compile.app import App
from kaigen.compile.context import Context, SpecIndex
from kaigen.compile.endpoint.compile import compile_endpoint
from kaigen.compile.job.compile import compile_job
from kaigen.compile.model.compile import compile_model
from kaigen.compile.problems import Problems
from kaigen.compile.topology.compile import compile_topology
from kaigen.config.settings import Config
from kaigen.kinds.block import read_block, replace_fields
from kaigen.kinds.endpoint import Endpoint
from kaigen.kinds.job import Job
from kaigen.kinds.model import Model
from kaigen.kinds.topology import Topology

Block = Endpoint | Job | Model | Topology
Object = dict[str, Any]
SOURCE: Object = {"huggingFace": {"repo": "a/b", "revision": "0" * 40}}


def context(profile: str = "generic", models: Mapping[str, Model] | None = None, target: str = "1.36") -> Context:
    """Return a context with Models that specs may refer to."""
    named = {
        name: replace_fields(model, metadata=replace_fields(model.metadata, name=name))
        for name, model in (models or {}).items()
    }
    specs = SpecIndex({("Model", "default", name): model for name, model in named.items()})
    return Context(get_profile(profile), Config(kubernetes=target), specs)


def configured(context: Context, **settings: Any) -> Context:
    """Return a context with other settings."""
    return replace(context, config=replace(context.config, **settings))


def model(**spec: Any) -> Model:
    """Return a minimal Model with these fields."""
    whole = {"source": SOURCE, "store": {"volume": {"size": "1Gi"}}, **spec}
    return read_block(Model, {"metadata": {"name": "m"}, "spec": whole})


def job(**spec: Any) -> Job:
    """Return a minimal Job with these fields."""
    return read_block(Job, {"metadata": {"name": "j"}, "spec": {"image": "i", **spec}})


def topology(**spec: Any) -> Topology:
    """Return a Topology with these fields."""
    return read_block(Topology, {"metadata": {"name": "t"}, "spec": spec})


def compiled(block: Block, where: Context, problems: Problems) -> App:
    """Return the app of a spec."""
    if isinstance(block, Job):
        return compile_job(block, where, problems)
    if isinstance(block, Endpoint):
        return compile_endpoint(block, where, problems)
    if isinstance(block, Topology):
        return compile_topology(block, where, problems)
    return compile_model(block, where, problems)


def app(block: Block, where: Context | None = None) -> App:
    """Return the app of a spec, which must have no errors."""
    problems = Problems()
    found = compiled(block, where or context(), problems)
    assert not problems.failed, problems.items
    return found


def objects(block: Block, where: Context | None = None) -> dict[str, Object]:
    """Return the objects of a spec without errors, by kind."""
    return {item.body["kind"]: item.body for item in app(block, where).render()}


def pod(block: Block, where: Context | None = None) -> Object:
    """Return the pod of the spec's Job, JobSet, TrainJob, Deployment or StatefulSet."""
    made = objects(block, where)
    kind = next(kind for kind in ("Job", "JobSet", "TrainingRuntime", "Deployment", "StatefulSet") if kind in made)
    template = made[kind]["spec"]
    if kind == "TrainingRuntime":
        template = template["template"]["spec"]
    if kind in ("JobSet", "TrainingRuntime"):
        template = template["replicatedJobs"][0]["template"]["spec"]
    spec: Object = template["template"]["spec"]
    return spec


def problem_paths(block: Block, where: Context | None = None) -> list[tuple[str, str]]:
    """Return code and dotted path of every error, then of every warning."""
    problems = Problems()
    compiled(block, where or context(), problems)
    worst_first = sorted(problems.items, key=lambda item: -item.severity)
    return [(problem.code, ".".join(map(str, problem.path))) for problem in worst_first]
