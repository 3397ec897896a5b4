"""Whether `kaigen check` and a real API server say the same of an object. `python -m` asks of many.

The API server is asked by server-side dry run, also whether it accepts the pods of kinds whose own controller makes
them. Differences that are meant are in `api_differences.yaml`, with reasons.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kaigen.check.controller_rules import CONTROLLER_RULES
from kaigen.check.kueue_rules import queued_findings
from kaigen.check.policy import check_policy
from kaigen.check.schema_check import check_object
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.claims import listed_claims
from kaigen.kubernetes.manifest import group_of, names_of, type_of
from kaigen.kubernetes.names import SUBDOMAIN
from kaigen.kubernetes.pods import pod_templates
from tests.cluster.api_mutations import Mutation, Mutator, bases, values_of
from tests.cluster.client import ApiError, Client, Object, kind_of
from tests.cluster.plane import Plane
from tests.cluster.tools.parts import module_of
from tools.api_differences import Difference, known

SERVER = module_of("kube-apiserver")[1].removeprefix("v").rpartition(".")[0]
"""The minor version of Kubernetes that both judge by."""
_STATE = {
    403: re.compile(r"no PriorityClass with name|RuntimeClass \S+ not found|error looking up service account"),
    422: re.compile(r"\b(is|are) immutable\b"),
}
"""What the API server says, by status, of an object that names one that is not there, or that has the name of one that
another test left there, whatever its form."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What both say of an object; empty where they accept it.

    Attributes:
        mutation: the object.
        kaigen: the errors.
        server: the message; None where it depends on what else is in the cluster.
    """

    mutation: Mutation
    kaigen: tuple[Problem, ...]
    server: str | None

    @property
    def agree(self) -> bool:
        """Whether both accept or both refuse it."""
        return self.server is None or bool(self.kaigen) == bool(self.server)

    def reasons(self, differences: Iterable[Difference]) -> list[Difference]:
        """Return the differences that explain it; none if one of kaigen's errors has no reason."""
        kind = self.mutation.kind
        if self.server:
            return [each for each in differences if each.explains_server(kind, self.server)][:1]
        found = []
        for problem in self.kaigen:
            reason = next((e for e in differences if e.explains_kaigen(kind, problem.code, problem.message)), None)
            if reason is None:
                return []
            found.append(reason)
        return found


def kaigen_errors(obj: Object) -> tuple[Problem, ...]:
    """Return the errors of `kaigen check`; Pod Security is the namespace's."""
    found = [*check_object(obj, target=SERVER), *check_policy(obj, pod_security="privileged")]
    return tuple(each for each in found if each.severity is Severity.ERROR)


def server_refusal(client: Client, obj: Object, namespace: str) -> str | None:
    """Return why the API server refuses an object or its pods; empty where it accepts them.

    None where it refuses because of what else is, or is not, in the cluster.
    """
    metadata = obj["metadata"] if isinstance(obj.get("metadata"), dict) else {}
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        # Server-side apply needs a name. Others may have it generated, which kaigen warns of.
        return None if metadata.get("generateName") else "no name"
    path = f"{client.path(kind_of(obj), namespace=namespace)}/{quote(name, safe='')}"
    params = {"fieldManager": "kaigen-tests", "fieldValidation": "Strict", "force": "true", "dryRun": "All"}
    try:
        client.request("PATCH", path, obj, params, "application/apply-patch+yaml")
        for pod in _pods(obj):
            client.create(pod, namespace, dry_run=True)
    except ApiError as error:
        about_others = error.code in _STATE and _STATE[error.code].search(error.message)
        return None if about_others else error.message or str(error.code)
    return ""


_NAMES = ("priorityClassName", "runtimeClassName", "serviceAccount", "serviceAccountName")


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) < 254 and re.fullmatch(SUBDOMAIN, value) is not None


def _pods(obj: Object) -> Iterator[Object]:
    """Yield the pods of an object, of whose templates the API server accepts more than of pods."""
    if obj["kind"] == "Pod":
        return
    for template in pod_templates(obj):
        if not template.single:
            metadata: dict[str, Any] = {**template.metadata, "generateName": "probe-"}
            for field in ("name", "namespace"):
                metadata.pop(field, None)
            # Admission looks up what these name before the pod is checked.
            spec = {key: value for key, value in template.spec.items() if key not in _NAMES or not _is_name(value)}
            # Their controllers add the volumes of claim templates, and JobSet the restart policy.
            names = names_of([claim.get("metadata") for _, claim in listed_claims(obj)])
            claimed = [{"name": name, "emptyDir": {}} for name in sorted(names)]
            volumes = spec.get("volumes", [])
            if claimed and isinstance(volumes, list):
                spec["volumes"] = [*volumes, *claimed]
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


_KUEUE = "kueue.x-k8s.io"


def asked_groups(client: Client) -> frozenset[str]:
    """Return the API groups of controllers whose webhooks the API server asks: other tests may have started them."""
    found = client.objects("admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration")
    rules = [rule for each in found for webhook in each.get("webhooks", ()) for rule in webhook.get("rules", ())]
    return frozenset(group for rule in rules for group in rule["apiGroups"])


def of_other_webhooks(obj: Object, asked: Collection[str]) -> Counter[tuple[str, FieldPath]]:
    """Return code and place of what kaigen refuses because a webhook does that the API server does not ask.

    Args:
        obj: the object.
        asked: the groups whose webhooks it asks.
    """
    rules = None if group_of(obj) in asked else CONTROLLER_RULES.get(type_of(obj))
    queued = () if _KUEUE in asked else queued_findings(obj)
    return Counter((each.code, each.path) for each in (*(rules(obj) if rules else ()), *queued))


def errors_by(obj: Object, asked: Collection[str]) -> tuple[Problem, ...]:
    """Return the errors of `kaigen check` except those of other webhooks, which come after those of the schema."""
    left, found = of_other_webhooks(obj, asked), []
    for each in reversed(kaigen_errors(obj)):
        if left[each.code, each.path]:
            left[each.code, each.path] -= 1
        else:
            found.append(each)
    return tuple(reversed(found))


def judge(client: Client, namespace: str, mutations: Iterable[Mutation], threads: int = 8) -> Iterator[Verdicts]:
    """Yield both verdicts of each object; kaigen's is without webhooks that the API server does not ask.

    Args:
        client: for the API server.
        namespace: of the objects.
        mutations: the objects.
        threads: questions at the same time.
    """

    def ask(mutation: Mutation) -> str | None:
        return server_refusal(client, mutation.body, namespace)

    given, asked = list(mutations), asked_groups(client)
    with ThreadPoolExecutor(threads) as pool:
        for mutation, refusal in zip(given, pool.map(ask, given), strict=True):
            yield Verdicts(mutation, errors_by(mutation.body, asked), refusal)


def unchanged(*kinds: str) -> list[Mutation]:
    """Return the valid objects of some kinds, or of all, themselves."""
    return [Mutation(kind_of(obj), "nothing", placed(obj)) for obj in bases() if not kinds or obj["kind"] in kinds]


def placed(obj: Object) -> Object:
    """Return an object without its namespace, which the request names."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "namespace"}
    return {**obj, "metadata": metadata}


def sample(seed: int, count: int, kinds: Collection[str] = ()) -> Iterator[Mutation]:
    """Yield changes of objects of some kinds, or of all: as many of every kind."""
    rng = random.Random(seed)
    found = bases()
    mutator = Mutator(values_of(found), rng)
    by_kind: dict[str, list[Object]] = defaultdict(list)
    for obj in found:
        if not kinds or obj["kind"] in kinds:
            by_kind[kind_of(obj)].append(obj)
    for items in by_kind.values():
        many = max(1, count // len(by_kind) // len(items))
        for obj in items:
            yield from mutator.mutations(placed(obj), many)


def unexplained(verdicts: Iterable[Verdicts]) -> list[Verdicts]:
    """Return the disagreements that no entry of the list explains."""
    return [each for each in verdicts if not each.agree and not each.reasons(known())]


def report(found: Sequence[Verdicts]) -> str:
    """Return disagreements as text, those alike together, the most frequent first."""
    groups: dict[tuple[str, str], list[Verdicts]] = defaultdict(list)
    for each in found:
        groups[_alike(each)].append(each)
    lines = []
    for (side, what), items in sorted(groups.items(), key=lambda item: -len(item[1])):
        kinds = Counter(item.mutation.kind.rpartition("/")[2] for item in items)
        lines.append(f"{len(items)} × {side}: {what}")
        lines.append(f"    {', '.join(kinds)}; such as {items[0].mutation.change}")
    return "\n".join(lines)


def _alike(verdicts: Verdicts) -> tuple[str, str]:
    if verdicts.server:
        text = re.sub(r'^.*? is invalid: |"[^"]*"|\[\d+\]', "", verdicts.server)
        return "only the server refuses", re.sub(r"\d+", "N", text)[:220]
    first = verdicts.kaigen[0]
    return "only kaigen refuses", f"{first.code} {re.sub(r'`[^`]*`|[0-9]+', 'X', first.message)}"[:220]


def main(arguments: list[str]) -> int:
    """Compare many objects on a plane of its own, print what differs without a reason, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.differential", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="about how many objects")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the choice of changes")
    given = parser.parse_args(arguments)
    with Plane() as plane:
        plane.make_namespace("differential", pod_security="privileged")
        verdicts = list(judge(plane.client, "differential", [*unchanged(), *sample(given.seed, given.count)]))
    left = unexplained(verdicts)
    reasons = Counter(each for v in verdicts if not v.agree for each in v.reasons(known()))
    refused = sum(bool(each.server) for each in verdicts)
    kinds = len({each.mutation.kind for each in verdicts})
    print(f"seed {given.seed}: {len(verdicts)} objects of {kinds} kinds, {refused} refused")
    for each, many in reasons.most_common():
        print(f"{many} × {each.reason}")
    print("\n".join(f"not needed: {each.reason}" for each in known() if each not in reasons))
    print(f"{len(left)} without a reason\n{report(left)}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
