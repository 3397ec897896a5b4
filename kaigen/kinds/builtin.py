"""kaigen's own kinds."""

from __future__ import annotations

from kaigen.kinds.entry import API_VERSION
from kaigen.kinds.kind import CompiledKind

_LOADED = "kaigen.kinds.loaded:specs_of"

BUILTIN_KINDS: tuple[CompiledKind, ...] = (
    CompiledKind(
        API_VERSION,
        "Model",
        "kaigen.kinds.model:Model",
        "model weights, downloaded, verified and stored",
        nullable=(("spec", "facts", "config", "*"),),
        compiler_reference="kaigen.compile.model.compile:compile_model",
        facts=("spec", "facts"),
        split_reference=_LOADED,
    ),
    CompiledKind(
        API_VERSION,
        "Dataset",
        "kaigen.kinds.model:Dataset",
        "files of a dataset, downloaded, verified and stored",
        compiler_reference="kaigen.compile.model.compile:compile_model",
        split_reference=_LOADED,
    ),
    CompiledKind(
        API_VERSION,
        "Job",
        "kaigen.kinds.job:Job",
        "a workload that runs to completion",
        compiler_reference="kaigen.compile.job.compile:compile_job",
    ),
    CompiledKind(
        API_VERSION,
        "Topology",
        "kaigen.kinds.topology:Topology",
        "a service that serves a model on one node or several",
        nullable=(("spec", "model", "facts", "config", "*"),),
        compiler_reference="kaigen.compile.topology.compile:compile_topology",
        facts=("spec", "model", "facts"),
        split_reference="kaigen.kinds.versions:specs_of",
    ),
    CompiledKind(
        API_VERSION,
        "Notebook",
        "kaigen.kinds.notebook:Notebook",
        "a Jupyter server whose files stay while it is suspended",
        compiler_reference="kaigen.compile.notebook.compile:compile_notebook",
    ),
    CompiledKind(
        API_VERSION,
        "Queue",
        "kaigen.kinds.queue:Queue",
        "quota of nodes and GPUs that pods wait for",
        compiler_reference="kaigen.compile.queue.compile:compile_queue",
        split_reference="kaigen.kinds.local_queues:specs_of",
    ),
    CompiledKind(
        API_VERSION,
        "Endpoint",
        "kaigen.kinds.endpoint:Endpoint",
        "one address for the models of many Topologies",
        compiler_reference="kaigen.compile.endpoint.compile:compile_endpoint",
    ),
    CompiledKind(
        API_VERSION,
        "Alias",
        "kaigen.kinds.alias:Alias",
        "another name of a Topology",
        compiler_reference="kaigen.compile.alias.compile:compile_alias",
    ),
)
