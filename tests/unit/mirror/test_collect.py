"""A transfer list has the images that pods run, and charts that objects of the repository install."""

from __future__ import annotations

from pathlib import Path

from kaigen.catalog.images import default_images
from kaigen.config.load import load_config
from kaigen.kubernetes.images import images_of
from kaigen.mirror.collect import transfer_list
from kaigen.mirror.model import render_text
from kaigen.pipeline.run import render
from tests import plain_yaml

ROOT = Path(__file__).parents[3]
RELEASES = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: metrics, namespace: ml}
spec:
  interval: 1h
  chart: {spec: {chart: prometheus, version: 27.1.0, sourceRef: {kind: HelmRepository, name: community}}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: keda, namespace: argocd}
spec:
  project: default
  destination: {server: https://kubernetes.default.svc, namespace: keda}
  source: {repoURL: https://charts.example, chart: keda, targetRevision: 2.17.0}
"""


def test_targets_are_the_images_of_the_rendered_pods(tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").write_text(
        "registry: {mirror: 'm.example/{host}', rules: [{from: registry.k8s.io, to: k.example/k8s}]}\n",
        encoding="utf-8",
    )
    specs = tmp_path / "specs"
    specs.mkdir()
    for path in sorted((ROOT / "examples").glob("*/*.yaml")):
        if path.parent.name in ("kaito", "ai-operator"):
            (specs / f"{path.parent.name}-{path.name}").write_bytes(path.read_bytes())
    config = load_config(tmp_path)
    files = render((), config)
    objects = [plain_yaml.load(bytes(data)) for path, data in files.items() if path.endswith(".yaml")]
    found = transfer_list(config)
    targets = {item.target for item in found.images}
    assert set(images_of(objects)) <= targets
    assert len(targets) > 5
    assert all(target.startswith(("m.example/", "k.example/k8s/")) for target in targets)
    (tmp_path / "kaigen.yaml").write_text("{}\n", encoding="utf-8")
    originals = {item.source for item in transfer_list(load_config(tmp_path)).images}
    assert {item.source for item in found.images} == originals


def test_images_of_a_router_are_copied_to_a_mirror(tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").write_text("registry: {mirror: 'm.example/{host}'}\n", encoding="utf-8")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "routed.yaml").write_bytes((ROOT / "examples" / "topology" / "routed.yaml").read_bytes())
    config = load_config(tmp_path)
    targets = {item.source: item.target for item in transfer_list(config).images}
    (deployment,) = [data for path, data in render((), config).items() if path.endswith("/deployment-router.yaml")]
    pulled = images_of([plain_yaml.load(bytes(deployment))])
    assert set(pulled) == {targets[default_images()[name]] for name in ("envoy", "endpointPicker")}
    assert all(image.startswith(("m.example/docker.io/", "m.example/registry.k8s.io/")) for image in pulled)


def test_the_target_of_an_image_from_values_is_that_image(tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").write_text(
        "registry: {mirror: m.example}\nvalues: {default/a: {image: 'quay.io/acme/box:1'}}\n", encoding="utf-8"
    )
    (tmp_path / "specs").mkdir()
    job = "apiVersion: kaigen.dev/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec: {image: busybox}\n"
    (tmp_path / "specs" / "job.yaml").write_text(job, encoding="utf-8")
    config = load_config(tmp_path)
    (rendered,) = [data for path, data in render((), config).items() if path.endswith("/job.yaml")]
    targets = {item.source: item.target for item in transfer_list(config).images}
    assert targets["quay.io/acme/box:1"] in bytes(rendered).decode()
    assert targets["quay.io/acme/box:1"] == "quay.io/acme/box:1"


def test_registry_of_kaigens_own_images_is_in_the_list(tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").write_text("registry: m.example\n", encoding="utf-8")
    (tmp_path / "specs").mkdir()
    job = "apiVersion: kaigen.dev/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec: {image: busybox}\n"
    (tmp_path / "specs" / "job.yaml").write_text(job, encoding="utf-8")
    targets = {item.source: item.target for item in transfer_list(load_config(tmp_path)).images}
    assert targets["docker.io/library/busybox"] == "busybox"
    assert targets["registry.k8s.io/kubectl:v1.36.0"] == "m.example/kubectl:v1.36.0"


def test_charts_of_flux_and_argo_cd_are_listed(tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").write_text("passthrough: true\nallow: {namespaces: [argocd]}\n", encoding="utf-8")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "releases.yaml").write_text(RELEASES, encoding="utf-8")
    found = transfer_list(load_config(tmp_path))
    assert [(item.source, item.version) for item in found.charts] == [
        ("community/prometheus", "27.1.0"),
        ("https://charts.example/keda", "2.17.0"),
    ]
    lines = render_text([found, found]).splitlines()
    assert len(lines) == 1 + 2
    assert all(line.count("\t") == 5 for line in lines)
