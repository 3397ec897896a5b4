"""Names of runs follow what changes their pods, wherever other objects have these names."""

from __future__ import annotations

import json
from pathlib import Path

from kaigen.config.load import load_config
from kaigen.pipeline.run import compile_specs


def test_volume_follows_a_run_whose_pods_a_network_or_a_patch_changes(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/job.yaml").write_text(
        "apiVersion: kaigen.dev/v1alpha1\nkind: Job\nmetadata: {name: brief}\n"
        "spec:\n  image: docker.io/acme/run:1\n  output: {volume: {size: 1Gi, ttl: 1h}}\n"
    )
    head = "apiVersion: kaigen.dev/v1alpha1\nkind: Config\n"
    target = "target: {kind: Job, app: brief, name: 'brief-????????'}"
    patch = "patch: {spec: {template: {spec: {terminationGracePeriodSeconds: 5}}}}"
    names = set()
    for settings in (
        "",
        "network: {httpsProxy: 'http://proxy.example.com:3128'}\n",
        f"patches:\n- {target}\n  {patch}\n",
    ):
        (tmp_path / "kaigen.yaml").write_text(head + settings)
        config = load_config(tmp_path)
        (app,) = compile_specs((), config).apps
        found = {each.object.role: each.body for each in app.objects}
        (volume,) = (
            json.loads(argument.removeprefix("--volume="))
            for argument in found["job-claim"]["spec"]["template"]["spec"]["containers"][0]["args"]
            if argument.startswith("--volume=")
        )
        name = found["job"]["metadata"]["name"]
        assert volume["metadata"]["annotations"]["kaigen.dev/job"] == name
        names.add((name, found["job-claim"]["metadata"]["name"]))
    assert len({work for work, _ in names}) == len({claim for _, claim in names}) == 3
