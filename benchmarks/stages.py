"""`python -m benchmarks.stages REPOSITORY`: print the seconds of each step of a render as JSON."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace


def main() -> None:
    """Render a repository step by step in this process; print seconds by step."""
    gc.disable()  # as the command line does
    seconds: dict[str, float] = {}

    @contextmanager
    def step(name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        seconds[name] = time.perf_counter() - started

    with step("import"):
        from kaigen.check.policy import check_policy
        from kaigen.check.schema_check import check_object
        from kaigen.config.load import load_config
        from kaigen.diagnostics.collector import Diagnostics
        from kaigen.output.tree import write_tree
        from kaigen.pipeline.run import Run
        from kaigen.yaml.document import parse
        from kaigen.yaml.sources import read_sources

    config = replace(load_config(Path(sys.argv[1])), passthrough=False)
    _warm(config.root)
    with step("read files"):
        sources, _ = read_sources([str(config.root / path) for path in config.specs], root=config.root)
    with step("parse YAML"):
        for source in sources:
            parse(source, Diagnostics())
    with step("load"):
        run = Run.load((), config, use_cache=False)
        assert run.specs
    with step("compile and check"):
        compilation = run.compilation()
    with step("check"):
        for item in compilation.apps:
            for rendered in item.objects:
                check_object(rendered.body, target=config.kubernetes)
                check_policy(rendered.body, pod_security=item.app.pod_security)
    with step("emit manifests"):
        manifests = compilation.files("manifests")
    with step("emit charts"):
        compilation.files("chart")
    output = config.root / config.output
    with step("write manifests"):
        write_tree(output, manifests)
    # Once more in one call, as `kaigen render` does: on all cores, and cached for the next run.
    output = output.with_name(f"{output.name}-again")
    with step("whole"):
        tree = Run.load((), config).tree(output, "manifests")
        tree.write()
        with step("remember"):
            tree.save()
    print(json.dumps(seconds))


def _warm(root: Path) -> None:
    """Import the modules and read the data that the steps use, so that each step measures its own work."""
    from kaigen.config.settings import Config
    from kaigen.pipeline.run import render

    one = sorted(str(path) for path in (root / "specs").iterdir())
    render([one[0], one[-1]], Config(root=root), form="both")


if __name__ == "__main__":
    main()
