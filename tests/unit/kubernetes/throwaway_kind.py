"""Adds a kind of objects that kaigen does not have and prints what each package knows of it, in its own process."""

from __future__ import annotations

import json
from typing import Any

from kaigen.kubernetes import other_kinds
from kaigen.kubernetes.names import label_1035_name
from kaigen.kubernetes.object_kind import (
    HealthConditions,
    ImmutableField,
    ObjectKind,
    PodPath,
    PodSelector,
    ReferenceField,
)

ROW = ObjectKind(
    "Gadget.example.com",
    lifecycle="rolling",
    pods=(PodPath("spec.template"),),
    restart_policies=("Always",),
    scalable=True,
    selector=PodSelector("selector", own=True),
    references=(ReferenceField("spec.certificate.name", ("Secret",), "reads"),),
    immutable=(ImmutableField("spec.serial"),),
    name=label_1035_name(10, "it is stamped on the gadget"),
    emitted=True,
    wave=3,
    health=HealthConditions(("Shiny",)),
    family="workload",
)
SCHEMA = {"ref": "apps.v1/Deployment"}


def gadget(**spec: Any) -> dict[str, Any]:
    """A Gadget with one pod."""
    pod = {"containers": [{"name": "main", "image": "i", "envFrom": [{"configMapRef": {"name": "missing"}}]}]}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": "shiny-gadget", "namespace": "ml"},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": pod},
            "certificate": {"name": "stamp"},
            **spec,
        },
    }


def main() -> None:
    """Print what the packages know of a Gadget, as JSON."""
    # Before the table is imported: tuples are made of its rows.
    other_kinds.OTHER_KINDS = (*other_kinds.OTHER_KINDS, ROW)

    from kaigen.kubernetes import schemas

    schemas.index()["kinds"]["Gadget"] = {"example.com/v1": SCHEMA}  # type: ignore[dict-item]

    from kaigen.catalog.profiles import get_profile
    from kaigen.check.policy import check_policy
    from kaigen.check.references import check_references
    from kaigen.check.schema_check import check_object
    from kaigen.compile.context import Context
    from kaigen.compile.problems import Problems
    from kaigen.diff.rules import workloads
    from kaigen.diff.rules.common import TYPES
    from kaigen.emit.chart import notes
    from kaigen.extend.build import Part, build_app
    from kaigen.gitops.health import health_of
    from kaigen.graph.edges import find_edges
    from kaigen.graph.model import AppNode, Location, ObjectNode
    from kaigen.graph.style import family
    from kaigen.kinds.base import Metadata
    from kaigen.kubernetes.kind_table import OWN_KINDS
    from kaigen.kubernetes.references import references_of

    body = gadget()
    node = ObjectNode("a/g", "a", body["apiVersion"], "Gadget", "ml", "shiny-gadget", 3, "", "", Location(""), ())
    app_node = AppNode("a", "ml", "a", "", "", Location(""), "", (node,))
    edges, _ = find_edges([app_node], {node.id: body})
    context = Context(get_profile("generic"))
    part = Part("gadget", gadget() | {"metadata": {"name": "g"}})
    app = build_app("Toy", Metadata(name="toy"), context, Problems(), [part])
    scaler: dict[str, Any] = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "namespace": "ml"},
        "spec": {"scaleTargetRef": {"kind": "Gadget", "name": "shiny-gadget"}},
    }
    broken = gadget()
    broken["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    print(
        json.dumps(
            {
                "schema": [problem.message for problem in check_object(body)],
                "restart": [problem.message for problem in check_object(broken)][-1],
                "policy": sorted({problem.where for problem in check_policy(body)}),
                "unresolved": [problem.message for _, problem in check_references([body])],
                "edges": sorted(f"{edge.relation.value} {edge.target}" for edge in edges),
                "family": family(node),
                "scaled": [one.target.type for one in references_of(scaler)],
                "rolls": ROW.type in workloads.ROLLING and ROW.type in workloads.SCALED,
                "immutable": ROW.type in TYPES,
                "granted": ("example.com", "Gadget") in OWN_KINDS,
                "health": [health.cel()["current"] for health in health_of([("example.com/v1", "Gadget")])],
                "wave": [item.wave for item in app.objects if item.kind == "Gadget"],
                "watched": "kubectl get gadgets,pods,services" in notes(app),
            }
        )
    )


if __name__ == "__main__":
    main()
