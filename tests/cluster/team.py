"""A team's repository of specs, rendered for one environment, and what begins and ends its syncing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from kaigen.config.load import load_config
from kaigen.pipeline.run import render
from tests.cluster.apps import demo_specs
from tests.cluster.argocd import APPLICATION, ArgoCD
from tests.cluster.client import Object
from tests.cluster.flux import GIT_REPOSITORY, KUSTOMIZATION, SECRET, Flux
from tests.cluster.patience import PATIENCE
from tests.cluster.plane import Plane

ARGOCD = {"argocd": {"namespace": "argocd"}}
FLUX = {"flux": {"namespace": "flux-system", "interval": "5s", "secret": SECRET}}
TENANCY = {"namespaces": True, "quota": {"requests.nvidia.com/gpu": 64}, "defaultDeny": ["Ingress"]}
PROJECT = "argoproj.io/v1alpha1/AppProject"
APPLICATION_SET = "argoproj.io/v1alpha1/ApplicationSet"
KEPT = "helm.sh/resource-policy"


@dataclass
class Team:
    """Specs, and kaigen.yaml with one environment.

    Attributes:
        folder: where they are.
        url: of the repository that is synced from.
        environment: the environment's name.
        gitops: the block `gitops` of kaigen.yaml, except the repository and the project.
        specs: by name.
        space: the environment's namespace; made of its name when empty.
        settings: more of kaigen.yaml.
    """

    folder: Path
    url: str
    environment: str
    gitops: Object
    specs: dict[str, Object] = field(default_factory=demo_specs)
    space: str = ""
    settings: Object = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.space = self.space or f"space-{self.environment}"

    def name(self, *parts: str) -> str:
        """The name of an Application or Kustomization."""
        return ".".join((self.environment, *parts))

    def write(self) -> None:
        """Write the specs and kaigen.yaml."""
        specs = self.folder / "specs"
        specs.mkdir(exist_ok=True, parents=True)
        for file in specs.iterdir():
            file.unlink()
        for name, spec in self.specs.items():
            (specs / f"{name}.yaml").write_text(yaml.safe_dump(spec))
        config = {
            "apiVersion": "kaigen.dev/v1alpha1",
            "kind": "Config",
            "profile": "k3s",
            "gitops": {"repository": self.url, "project": "team", **self.gitops},
            "allow": {"servers": ["127.0.0.1"]},
            "environments": {self.environment: {"namespace": self.space}},
            **self.settings,
        }
        (self.folder / "kaigen.yaml").write_text(yaml.safe_dump(config))

    def files(self) -> dict[str, str]:
        """Write and render, and give what the repository is to hold."""
        self.write()
        files = render((), load_config(self.folder, self.environment))
        return {f"rendered/{self.environment}/{path}": data.decode() for path, data in files.items()}

    def objects(self, files: Mapping[str, str], folder: str) -> list[Object]:
        """The objects of a folder of the rendered tree."""
        start = f"rendered/{self.environment}/{folder}/"
        return [
            yaml.safe_load(text)
            for path, text in files.items()
            if path.startswith(start) and not path.endswith("kustomization.yaml")
        ]

    def of_app(self, files: Mapping[str, str], app: str) -> list[Object]:
        """The objects of an app."""
        return self.objects(files, f"{self.space}/{app}/manifests")


def is_kept(obj: Object) -> bool:
    """Whether an object stays when its app goes."""
    return bool(obj["metadata"].get("annotations", {}).get(KEPT) == "keep")


def changed(spec: Object, **fields: object) -> Object:
    """A spec with other fields."""
    return {**spec, "spec": {**spec["spec"], **fields}}


def named(spec: Object, name: str) -> Object:
    """A spec under another name."""
    return {**spec, "metadata": {**spec["metadata"], "name": name}}


def bootstrap_argocd(plane: Plane, team: Team, files: Mapping[str, str]) -> None:
    """What is done once, by hand, for Argo CD."""
    for obj in team.objects(files, "_argocd/bootstrap"):
        plane.client.apply(obj)
    config = files[f"rendered/{team.environment}/_argocd/argocd-cm.yaml"]
    plane.client.apply(yaml.safe_load(config))


def bootstrap_flux(plane: Plane, team: Team, files: Mapping[str, str]) -> None:
    """What is done once, by hand, for Flux."""
    for obj in team.objects(files, "_flux/bootstrap"):
        plane.client.apply(obj)


def sync_flux(plane: Plane, flux: Flux, team: Team, files: Mapping[str, str]) -> str:
    """Commit a team's files to Flux's Git server, bootstrap them, and have Flux fetch them now.

    Its sources are in the team's namespace if an account of that syncs the apps: then that gets the password, too.

    Returns:
        The revision.
    """
    revision = flux.commit(team.environment, files)
    bootstrap_flux(plane, team, files)
    flux.fetch(GIT_REPOSITORY, f"team-{team.environment}")
    if team.gitops.get("tenancy", {}).get("serviceAccount"):
        plane.client.wait("v1/Namespace", team.space, "", bool, "made")
        flux.give_credentials(team.space)
    flux.fetch_all(f"kaigen.dev/environment={team.environment}")
    return revision


def wait_application(plane: Plane, argocd: ArgoCD, name: str, revision: str, timeout: float = PATIENCE) -> Object:
    """Wait until the root has made an Application, and that has a commit in the cluster."""
    plane.client.wait(APPLICATION, name, argocd.namespace, bool, "made", timeout)
    return argocd.wait_synced(name, revision, timeout=timeout)


def remove_applications(plane: Plane, argocd: ArgoCD, environment: str) -> None:
    """Delete what an environment has in Argo CD: first the root and an ApplicationSet, which would make the others
    again."""
    labels = f"kaigen.dev/environment={environment}"
    plane.client.delete(APPLICATION, f"team-{environment}-root", argocd.namespace)
    for found in plane.client.objects(APPLICATION_SET, argocd.namespace, labels):
        plane.client.delete(APPLICATION_SET, found["metadata"]["name"], argocd.namespace)
    for found in plane.client.objects(APPLICATION, argocd.namespace, labels):
        plane.client.delete(APPLICATION, found["metadata"]["name"], argocd.namespace)
    for found in plane.client.objects(APPLICATION, argocd.namespace, labels):
        plane.client.wait_gone(APPLICATION, found["metadata"]["name"], argocd.namespace)
    for found in plane.client.objects(PROJECT, argocd.namespace, labels):
        plane.client.delete(PROJECT, found["metadata"]["name"], argocd.namespace)


def remove_bootstrap(plane: Plane, flux: Flux, environment: str) -> None:
    """Delete the Kustomizations of an environment that apply the others, and wait until they are gone.

    While they run, they wait for the health of the others, and Flux does not finish the deletion of one before
    that wait is over.
    """
    for name in (f"team-{environment}", f"team-{environment}-tenants"):
        plane.client.delete(KUSTOMIZATION, name, flux.namespace)
        plane.client.wait_gone(KUSTOMIZATION, name, flux.namespace)
