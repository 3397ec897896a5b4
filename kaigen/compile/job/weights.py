"""Weights that a Job starts from: of a Model that others read too, or fetched into the Job's own volume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kaigen.compile.builders import settings
from kaigen.compile.builders.pods import container_security, image_fields
from kaigen.compile.builders.weights import PERMANENT_EXIT_CODES, fetch_container
from kaigen.compile.context import Context
from kaigen.compile.expressions import SpecPath, Tree
from kaigen.compile.model.volume import (
    check_sharing,
    claim_name,
    find_model,
    gate,
    mount_annotations,
    warn_of_pinned_volume,
)
from kaigen.compile.problems import Problems
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.compat import Naming
from kaigen.kinds.job import JobSpec, ModelUse


@dataclass(frozen=True, slots=True)
class JobWeights:
    """How weights reach the container.

    Attributes:
        init: the container that runs before it.
        mounts: of the container.
        volumes: of the pod.
        permanent: exit codes, by container, after which a retry is pointless.
        annotations: of the pod, without which it cannot mount them.
    """

    init: dict[str, Tree]
    mounts: list[Mapping[str, Tree]]
    volumes: list[Tree]
    permanent: Mapping[str, tuple[int, ...]]
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WeightsReader:
    """The Job that starts from weights.

    Attributes:
        spec: its spec.
        namespace: of the app.
        context: what it is compiled for.
        problems: takes what is wrong.
        naming: names of a foreign system.
        has_gpu: whether its pods have GPUs.
    """

    spec: JobSpec
    namespace: str
    context: Context
    problems: Problems
    naming: Naming
    has_gpu: bool

    def weights(self) -> JobWeights | None:
        """The weights; None when the Job names none.

        Raises:
            ProblemError: when they cannot reach it.
        """
        use = self.spec.model
        if use is None:
            return None
        if isinstance(use, str):
            return self._shared(use, "/model", ("spec", "model"))
        if use.name is not None:
            return self._shared(use.name, use.mount_path, ("spec", "model", "name"))
        return self._own(use)

    def _shared(self, name: str, folder: str, origin: SpecPath) -> JobWeights:
        model = find_model(self.context, self.namespace, name, origin)
        nodes = self.spec.nodes
        check_sharing(model, self.problems, pods=nodes, what=f"{nodes} nodes", origin=origin)
        warn_of_pinned_volume(model, self.problems, has_gpu=self.has_gpu, consumer="Job", origin=origin)
        mount: dict[str, Tree] = {"name": "model", "mountPath": folder, "readOnly": True}
        claimed = settings.text(
            "model.claimName", claim_name(model), "Volume that holds the weights.", origin=origin
        )
        return JobWeights(
            init=gate(model, self.context, name="wait-for-model", folder=folder, mounts=[mount]),
            mounts=[mount],
            volumes=[{"name": "model", "persistentVolumeClaim": {"claimName": claimed, "readOnly": True}}],
            permanent={},
            annotations=mount_annotations(model),
        )

    def _own(self, use: ModelUse) -> JobWeights:
        assert use.source is not None
        output = self.spec.output.volume if self.spec.output else None
        root = output.mount_path.rstrip("/") + "/" if output else ""
        if output is None or not (use.mount_path.rstrip("/") + "/").startswith(root):
            where = f"`{output.mount_path}`" if output else "a volume"
            raise ProblemError(
                "KG0303",
                f"`model.source` is fetched into the Job's own volume, but `{use.mount_path}` is not inside {where}",
                ("spec", "model", "mountPath") if "mount_path" in use.model_fields_set else ("spec", "model"),
                f"set `model.mountPath` to a folder in {where}"
                if output
                else "add `output.volume`, and set `model.mountPath` to a folder in it",
            )
        if self.spec.nodes > 1:
            raise ProblemError(
                "KG0304",
                "several nodes would each fetch `model.source` into the same folder",
                ("spec", "model", "source"),
                "make it a Model of its own and name it in `model`",
            )
        mount: dict[str, Tree] = {"name": self.naming.volume, "mountPath": output.mount_path}
        if self.naming.fetch_command:
            return JobWeights(self._foreign_fetch(use, mount), [], [], {})
        init = fetch_container(
            use.source,
            use.transfer,
            self.context,
            name=self.naming.init,
            destination=use.mount_path,
            mounts=[mount],
            origin=("spec", "model", "source"),
            transfer_origin=("spec", "model", "transfer"),
        )
        return JobWeights(init, [], [], {self.naming.init: PERMANENT_EXIT_CODES})

    def _foreign_fetch(self, use: ModelUse, mount: dict[str, Tree]) -> dict[str, Tree]:
        assert use.source is not None
        hub = use.source.hugging_face
        assert self.spec.image is not None
        assert hub is not None, "a foreign system's command fetches from the Hub"
        # As another user than the image's own, it has no home that it may write to but the volume.
        env: list[Tree] = [
            {"name": "PYTHONUNBUFFERED", "value": "1"},
            {"name": "HOME", "value": mount["mountPath"]},
        ]
        if hub.token_secret:
            reference: Tree = {"name": hub.token_secret.name, "key": hub.token_secret.key}
            env.insert(0, {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}})
        return {
            "name": self.naming.init,
            **image_fields(self.spec.image, "", ("spec", "image")),
            "command": list(self.naming.fetch_command),
            "env": env,
            "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}},
            "securityContext": container_security(read_only=False),
            "volumeMounts": [mount],
        }
