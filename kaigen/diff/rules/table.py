"""Every rule; findings of equal rank are reported in this order."""

from __future__ import annotations

from functools import cache

from kaigen.diff.model import Effect, ObjectStatus
from kaigen.diff.rules import (
    admission,
    common,
    config,
    containers,
    endpoint,
    fields,
    kinds,
    network,
    policies,
    protections,
    rbac,
    reach,
    runs,
    security,
    storage,
    syncers,
    workloads,
)
from kaigen.diff.rules.case import Case, Rule

_ADDED: frozenset[ObjectStatus] = frozenset({"added"})
_REMOVED: frozenset[ObjectStatus] = frozenset({"removed"})
_CHANGED: frozenset[ObjectStatus] = frozenset({"changed"})
_REPLACED: frozenset[ObjectStatus] = frozenset({"replaced"})
_BOTH_SIDES = _CHANGED | _REPLACED
_NEW_SIDE = _ADDED | _BOTH_SIDES
_ANY = _NEW_SIDE | _REMOVED

_SERVICE = frozenset({"Service"})
_SET = frozenset({"StatefulSet.apps"})
_CLAIM = frozenset({storage.PVC})
_VOLUME = frozenset({"PersistentVolume"})
_POLICY = frozenset({"NetworkPolicy.networking.k8s.io"})
_NAMESPACE = frozenset({"Namespace"})
_SYNCERS = frozenset({syncers.APPLICATION, syncers.APPLICATION_SET, syncers.KUSTOMIZATION, syncers.HELM_RELEASE})

RULES: tuple[Rule, ...] = (
    # What becomes of the object as such.
    Rule("immutable", _CHANGED, common.immutable, common.TYPES),
    Rule("custom-rule", _CHANGED, common.custom_rule),
    Rule("silently-kept", _CHANGED, common.silently_kept, frozenset({"Service", storage.PVC})),
    Rule("moved", _REPLACED, common.moved),
    Rule("passed-on", _BOTH_SIDES, common.passed_on),
    # Runs.
    Rule("new-run", _REPLACED, runs.new_run, runs.RUNS),
    Rule("revision", _REPLACED, runs.revision, runs.RUNS),
    Rule("run-added", _ADDED, runs.run_added, runs.RUNS),
    Rule("run-removed", _REMOVED, runs.run_removed, runs.RUNS),
    Rule("run-controls", _CHANGED, runs.run_controls, runs.RUNS),
    Rule("run-ttl", _NEW_SIDE, runs.run_ttl, runs.RUNS),
    Rule("pod-ttl", _CHANGED, runs.pod_ttl, runs.JOBS),
    Rule("volume-ttl", _BOTH_SIDES, runs.volume_ttl, runs.JOBS),
    Rule("cron", _CHANGED, runs.cron, frozenset({"CronJob.batch"})),
    # What serves.
    Rule("restart", _CHANGED, workloads.restart, workloads.ROLLING),
    Rule("scale", _CHANGED, workloads.scale, workloads.SCALED),
    Rule("group-size", _CHANGED, workloads.group_size, frozenset({workloads.LWS})),
    Rule("serving-added", _ADDED, workloads.serving_added, workloads.SERVING),
    Rule("serving-removed", _REMOVED, workloads.serving_removed, workloads.SERVING),
    Rule("serving-renamed", _REPLACED, workloads.serving_renamed, workloads.SERVING),
    Rule("ray-service", _CHANGED, workloads.ray_service, frozenset({"RayService.ray.io"})),
    Rule("queue", _BOTH_SIDES, workloads.queue),
    Rule("admitted", _CHANGED, workloads.admitted, workloads.SCALED),
    Rule("queue-quota", _ANY, admission.cluster_queue, admission.CLUSTER_QUEUES),
    Rule("queue-holds", _NEW_SIDE, admission.queued, admission.QUEUED),
    # Data.
    Rule("claim-removed", _REMOVED, storage.claim_removed, _CLAIM),
    Rule("claim-replaced", _REPLACED, storage.claim_replaced, _CLAIM),
    Rule("claim-resized", _CHANGED, storage.claim_resized, _CLAIM),
    Rule("claim-added", _ADDED, storage.claim_added, _CLAIM),
    Rule("claim-keeping", _CHANGED, storage.keeping_changed, _CLAIM),
    Rule("volume-removed", _REMOVED, storage.volume_removed, _VOLUME),
    Rule("volume-reclaim", _CHANGED, storage.volume_reclaim, _VOLUME),
    Rule("set-claims", _REMOVED | _REPLACED, storage.templates_of_removed_set, _SET),
    Rule("set-scaled-down", _CHANGED, storage.scaled_down_set, _SET),
    # Security.
    Rule("pod-security", _NEW_SIDE, security.pods),
    Rule("unknown-pods", _NEW_SIDE, security.unknown_pods),
    Rule("writable-root", _BOTH_SIDES, security.writable_root),
    Rule("token", _NEW_SIDE, security.token),
    Rule("account", _BOTH_SIDES, security.account),
    Rule("account-rights", _NEW_SIDE, security.account_rights),
    Rule("namespace-level", _NEW_SIDE, security.namespace_level, _NAMESPACE),
    Rule("rules", _ANY, rbac.rules, rbac.ROLES),
    Rule("aggregated", _NEW_SIDE, rbac.aggregated, frozenset({"ClusterRole.rbac.authorization.k8s.io"})),
    Rule("subjects", _ANY, rbac.subjects, rbac.BINDINGS),
    # What reaches beyond the namespace.
    Rule("duplicate", _ADDED, kinds.duplicate),
    Rule("reach", _NEW_SIDE, fields.reach),
    Rule("field", _NEW_SIDE, fields.fields, fields.FIELD_TYPES),
    Rule("csi-volume", _NEW_SIDE, storage.csi),
    Rule("quota", _CHANGED | _REPLACED | _REMOVED, protections.quota, frozenset({protections.QUOTA})),
    Rule("alerts", _CHANGED | _REPLACED | _REMOVED, protections.alerts, frozenset({protections.ALERTS})),
    Rule("volume-reach", _NEW_SIDE, reach.volume, reach.VOLUME),
    Rule("default-priority", _NEW_SIDE, reach.priority, reach.PRIORITY),
    Rule("admission", _NEW_SIDE, reach.hooks, reach.HOOKS),
    Rule("default-class", _NEW_SIDE, reach.defaults, reach.DEFAULTS),
    Rule("snippet", _NEW_SIDE, reach.snippets, reach.INGRESS),
    Rule("syncer-keys", _NEW_SIDE, reach.syncer_keys),
    Rule("syncer-keys-removed", _BOTH_SIDES, reach.syncer_keys_removed),
    Rule("scheduling-reach", _NEW_SIDE, reach.scheduling),
    # What containers run, with how much, and where.
    Rule("resources", _BOTH_SIDES, containers.resources),
    Rule("placement", _BOTH_SIDES, containers.placement),
    Rule("image", _BOTH_SIDES, containers.images),
    Rule("engine-upgrade", _BOTH_SIDES, containers.upgrade),
    Rule("image-digest", _NEW_SIDE, containers.undigested),
    # Network.
    Rule("service-type", _NEW_SIDE, network.service_type, _SERVICE),
    Rule("service-ports", _BOTH_SIDES, network.service_ports, _SERVICE),
    Rule("service-selector", _BOTH_SIDES, network.service_selector, _SERVICE),
    Rule("route-hosts", _ANY, network.route_hosts, network.ROUTES | _SERVICE),
    Rule("route-backends", _BOTH_SIDES, network.route_backends, network.ROUTES),
    Rule("policy-removed", _REMOVED, policies.policy_removed, _POLICY),
    Rule("policy-changed", _BOTH_SIDES, policies.policy_changed, _POLICY),
    Rule("policy-replaced", _REPLACED, policies.policy_replaced, _POLICY),
    Rule("policy-added", _ADDED, policies.policy_added, _POLICY),
    Rule("policy-opens", _NEW_SIDE, policies.policy_opens, _POLICY),
    # Scaling.
    Rule("scaling-bounds", _BOTH_SIDES, workloads.bounds, workloads.TYPES),
    Rule("scaling-triggers", _BOTH_SIDES, workloads.triggers, workloads.TYPES),
    Rule("scaler-added", _ADDED, workloads.scaler_added, workloads.TYPES),
    Rule("scaler-removed", _REMOVED, workloads.scaler_removed, workloads.TYPES - {workloads.SCALED_JOB}),
    Rule("disruption", _BOTH_SIDES, workloads.disruption, frozenset({"PodDisruptionBudget.policy"})),
    # Configuration.
    Rule("config-data", _CHANGED, config.data_changed, config.CONFIG),
    Rule("config-replaced", _REPLACED, config.config_replaced, config.CONFIG),
    Rule("config-removed", _REMOVED, config.config_removed, config.CONFIG),
    Rule("endpoint-access", _ANY, endpoint.access, endpoint.CONFIG),
    Rule("secret-source", _CHANGED | _REMOVED, config.secret_source, config.EXTERNAL),
    # Argo CD and Flux.
    Rule("syncer-removed", _REMOVED, syncers.syncer_removed, _SYNCERS),
    Rule("sync-source", _BOTH_SIDES, syncers.sync_source, _SYNCERS | syncers.SOURCES),
    Rule("sync-target", _BOTH_SIDES, syncers.sync_target, _SYNCERS),
    Rule("sync-account", _BOTH_SIDES, syncers.sync_account, _SYNCERS),
    Rule("verification", _BOTH_SIDES, syncers.verification, _SYNCERS | syncers.SOURCES | frozenset({syncers.PROJECT})),
    Rule("sync-policy", _BOTH_SIDES, syncers.sync_policy, _SYNCERS),
    Rule("project", _ANY, syncers.project, frozenset({syncers.PROJECT})),
    Rule("sync-wave", _BOTH_SIDES, common.sync_wave),
    # Cluster-wide objects.
    Rule("namespace-removed", _REMOVED, common.namespace_removed, _NAMESPACE),
    Rule(
        "definition-removed",
        _REMOVED,
        common.definition_removed,
        frozenset({"CustomResourceDefinition.apiextensions.k8s.io"}),
    ),
    Rule("api-version", _BOTH_SIDES, common.api_version),
)

DOUBTS: tuple[Rule, ...] = (
    # Applied when no rule above finds a danger.
    Rule("kind", _ANY, kinds.kind),
)

FALLBACKS: tuple[Rule, ...] = (
    # Applied in order, only when no rule above applies.
    Rule("renamed", _REPLACED, common.renamed),
    Rule("metadata-only", _CHANGED, common.metadata_only),
    Rule("updated", _BOTH_SIDES, common.updated),
    Rule("created", _ADDED, common.created),
    Rule("deleted", _REMOVED, common.deleted),
)


@cache
def _rules_for(kind: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in RULES if not rule.types or kind in rule.types)


def effects_of(case: Case) -> tuple[Effect, ...]:
    """Return the effects of a change of one object, dangers first; never empty."""
    found: dict[str, Effect] = {}
    for rule in _rules_for(case.obj.type):
        if case.status in rule.on:
            for level, text in rule.apply(case):
                found.setdefault(text, Effect(level, text, rule.name))
    for rule in DOUBTS:
        if case.status in rule.on and all(effect.level != "danger" for effect in found.values()):
            for level, text in rule.apply(case):
                found.setdefault(text, Effect(level, text, rule.name))
    for rule in FALLBACKS:
        if found:
            break
        if case.status in rule.on:
            for level, text in rule.apply(case):
                found[text] = Effect(level, text, rule.name)
    return tuple(sorted(found.values(), key=lambda effect: -effect.rank))
