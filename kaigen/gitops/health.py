"""Health checks for kinds that Argo CD and Flux do not know: Lua for Argo CD, CEL for Flux.

Both come from the conditions in the table of object kinds, so that they agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.object_kind import HealthConditions


class Health(Struct, frozen=True):
    """The health of one kind by its conditions.

    Attributes:
        api_version: of the kind.
        kind: its name.
        conditions: what the conditions mean.
    """

    api_version: str
    kind: str
    conditions: HealthConditions

    @property
    def argocd_key(self) -> str:
        """Key of its script in the ConfigMap `argocd-cm`."""
        return f"resource.customizations.health.{self.api_version.rpartition('/')[0]}_{self.kind}"

    def lua(self) -> str:
        """Return the Lua script for Argo CD's health check of `obj`."""
        return _LUA.format(
            holders=f"obj.status.{self.conditions.at} or {{}}" if self.conditions.at else "{obj.status}",
            true_degraded=_lua_set(self.conditions.degraded),
            false_degraded=_lua_set(self.conditions.broken),
            suspended=_lua_set(self.conditions.suspended),
            healthy=_lua_set(self.conditions.healthy),
        )

    def cel(self, *, queued: bool = False) -> dict[str, str]:
        """Return an entry of `healthCheckExprs`.

        Args:
            queued: a suspended object waits for its queue. Otherwise it counts as healthy: Flux has no status for it.
        """
        suspended = () if queued else self.conditions.suspended
        failed = [self._exists(self.conditions.degraded, "True"), self._exists(self.conditions.broken, "False")]
        entry = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "current": self._exists((*self.conditions.healthy, *suspended), "True"),
        }
        failing = " || ".join(part for part in failed if part)
        return {**entry, "failed": failing} if failing else entry

    def _exists(self, types: Sequence[str], status: str) -> str:
        if not types:
            return ""
        names = ", ".join(f"'{name}'" for name in types)
        test = f"exists(c, c.type in [{names}] && c.status == '{status}')"
        if self.conditions.at:
            entries = f"status.{self.conditions.at}"
            return f"(has({entries}) && {entries}.exists(p, has(p.conditions) && p.conditions.{test}))"
        return f"(has(status.conditions) && status.conditions.{test})"


def _lua_set(names: Iterable[str]) -> str:
    return "{" + ", ".join(f"{name} = true" for name in names) + "}"


_LUA = """\
local health = {{status = "Progressing", message = "waiting for its controller"}}
if obj.status == nil then
  return health
end
if obj.status.observedGeneration ~= nil and obj.metadata.generation ~= nil
    and obj.status.observedGeneration < obj.metadata.generation then
  return health
end
local true_degraded, false_degraded = {true_degraded}, {false_degraded}
local suspended, healthy = {suspended}, {healthy}
local rank = {{Progressing = 0, Healthy = 1, Suspended = 2, Degraded = 3}}
local function is_known(status, condition)
  if rank[status] > rank[health.status] then
    health = {{status = status, message = condition.message or condition.reason or condition.type}}
  end
end
for _, holder in ipairs({holders}) do
  for _, condition in ipairs(holder.conditions or {{}}) do
    if condition.status == "True" then
      if true_degraded[condition.type] then is_known("Degraded", condition) end
      if suspended[condition.type] then is_known("Suspended", condition) end
      if healthy[condition.type] then is_known("Healthy", condition) end
    elseif condition.status == "False" and false_degraded[condition.type] then
      is_known("Degraded", condition)
    end
  end
end
return health
"""

APPLICATION_HEALTH_KEY = "resource.customizations.health.argoproj.io_Application"
APPLICATION_HEALTH = """\
local health = {status = "Progressing", message = ""}
if obj.status ~= nil and obj.status.health ~= nil then
  health.status = obj.status.health.status or health.status
  health.message = obj.status.health.message or ""
end
local running = obj.operation ~= nil
if obj.status ~= nil and obj.status.operationState ~= nil then
  running = running or obj.status.operationState.phase == "Running"
end
if running and health.status == "Healthy" then
  health.status = "Progressing"
  health.message = "its sync is not over"
end
return health
"""
"""Health of an Application is that of what it syncs, so that sync waves between Applications wait for it.

Between two waves of its own an Application is called healthy, as what is not there yet does not count: it is not, until
its sync is over. Source: Argo CD's documentation, "App of apps", for all but that.
"""

CLAIM_HEALTH_KEY = "resource.customizations.health.PersistentVolumeClaim"
CLAIM_HEALTH = """\
local health = {status = "Healthy", message = ""}
if obj.status ~= nil and obj.status.phase == "Lost" then
  health = {status = "Degraded", message = "its volume is gone"}
elseif obj.status == nil or obj.status.phase ~= "Bound" then
  health.message = "waiting for its first pod"
end
return health
"""
"""A claim that waits for its first pod is as it shall be. Argo CD waits for it by default, before it minds that the
pod's owner was refused, and so for ever: the sync neither fails nor is tried again. A pod without its volume is not
healthy, so nothing is hidden.
"""


def health_of(kinds: Iterable[tuple[str, str]]) -> list[Health]:
    """Return the health of the given apiVersions and kinds, in the order of the table; of those with conditions."""
    versions = {(version.rpartition("/")[0], kind): version for version, kind in kinds}
    found = []
    for row in KINDS.values():
        version = versions.get((row.group, row.kind))
        if version is not None and row.health is not None:
            found.append(Health(version, row.kind, row.health))
    return found
