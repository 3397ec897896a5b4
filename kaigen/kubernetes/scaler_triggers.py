"""The triggers of KEDA with which a team reaches no other one, and which of their fields name servers.

Source: the package pkg/scalers of KEDA 2.21.0, the tags `keda` of the structs with the metadata of each trigger. Left
out are triggers that connect with the identity of a cloud, deprecated fields, and fields by which KEDA connects to
servers that they do not name: `cloudID`, `connectionString`, and servers that an environment variable names, as in
`hostFromEnv`.

With `aggregateFromKubeServiceEndpoints`, KEDA takes the first two parts of the host of `url` for the name and the
namespace of a Service, and asks its endpoints, whatever follows (`getEndpointsUrlsFromServiceURL` of
metrics_api_scaler.go). So `x.team-b.svc.team-a.svc` names a server of team-a by DNS, and one of team-b here.

Some clients join fields to one text, which they parse again: KEDA's `buildConnArray` (postgresql_scaler.go) writes
`host=… user=… dbname=…` and quotes only values with a space, and `mysql.Config.FormatDSN` of go-sql-driver/mysql writes
`user:password@tcp(host:port)/dbname`, of which `ParseDSN` reads the server after the last `@` before the last `/`. So a
host, a port and a name of a database have no characters by which such a text could name another server. A password of
PostgreSQL can come from a Secret or a variable, which nobody checks, so `postgresql` needs a grant.

gRPC reads `passthrough://SERVER/OTHER:80`, `dns://SERVER/OTHER:80` and `unix://…` as names of the other server
(https://github.com/grpc/grpc/blob/master/doc/naming.md), so its servers have no scheme and no path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

ANY_KEY = "[A-Za-z0-9_.-]+"
"""A pattern of RE2 and Python for every key of a trigger."""


class Trigger(NamedTuple):
    """The fields of a trigger.

    Attributes:
        servers: that have a host or URL, or several with commas.
        words: that have a word or number, or several with commas.
        others: that have any text, as patterns of RE2 and Python.
        hosts: that have a host with or without a port, or several with commas.
        names: of users and databases, which are joined with the host to one text.
        is_free: whether a tenant needs no grant for the trigger.
    """

    servers: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    is_free: bool = True


def _either(*names: str) -> tuple[str, ...]:
    """Return fields that may also name an environment variable of the pods."""
    return tuple(f"{name}(FromEnv)?" for name in names)


def _environment(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}FromEnv" for name in names)


_LOGIN = ("authModes?", "apiKey", "keyParamName", "method")
_QUERY = ("query", "threshold", "activationThreshold", "ignoreNullValues", "unsafeSsl")
_REDIS = Trigger(
    hosts=("address", "addresses", "host", "hosts"),
    words=("port", "ports"),
    others=(
        *_either("username", "password", "sentinelUsername", "sentinelPassword", "sentinelMaster"),
        "databaseIndex",
        "enableTLS",
        "unsafeSsl",
    ),
)
_LISTS = _REDIS._replace(others=(*_REDIS.others, "listName", "(activationL|l)istLength"))
_STREAMS = _REDIS._replace(
    others=(*_REDIS.others, "pendingEntriesCount", "stream", "streamLength", "(activationL|l)agCount", "consumerGroup")
)
_KAFKA = Trigger(
    hosts=("bootstrapServers",),
    others=(
        *_either("consumerGroup", "topic"),
        "partitionLimitation",
        "(activationL|l)agThreshold",
        "offsetResetPolicy",
        "allowIdleConsumers",
        "excludePersistentLag",
        "scaleToZeroOnInvalidOffset",
        "limitToPartitionsWithLag",
        "ensureEvenDistributionOfPartitions",
        "fullMetadata",
        "version",
        "sasl",
        "tls",
        "unsafeSsl",
    ),
)
_EXTERNAL = Trigger(hosts=("scalerAddress",), others=(ANY_KEY,))
_RESOURCE = Trigger(others=("value", "containerName"))

TRIGGERS: Mapping[str, Trigger] = {
    "apache-kafka": _KAFKA,
    "cpu": _RESOURCE,
    "cron": Trigger(others=("start", "end", "timezone", "desiredReplicas")),
    "elasticsearch": Trigger(
        ("addresses",),
        (),
        (
            *_either("password"),
            "username",
            "unsafeSsl",
            "index",
            "searchTemplateName",
            "query",
            "parameters",
            "valueLocation",
            "(activationT|t)argetValue",
            "ignoreNullValues",
            "metricName",
        ),
    ),
    "etcd": Trigger(("endpoints",), (), ("watchKey", "(activationV|v)alue", "watchProgressNotifyInterval")),
    "external": _EXTERNAL,
    "external-push": _EXTERNAL,
    "graphite": Trigger(("serverAddress",), (), (*_QUERY, *_LOGIN, "queryTime", "metricName")),
    "influxdb": Trigger(
        ("serverURL",),
        (),
        (
            *_either("organizationName"),
            *_environment("authToken"),
            "query",
            "queryType",
            "influxVersion",
            "database",
            "metricKey",
            "unsafeSsl",
            "(activationT|t)hresholdValue",
        ),
    ),
    "kafka": _KAFKA,
    "kubernetes-resource": Trigger(
        others=(
            "resourceKind",
            "resourceName",
            "key",
            "format",
            "valueLocation",
            "valueType",
            "(activationT|t)argetValue",
        )
    ),
    "kubernetes-workload": Trigger(others=("podSelector", "(activationV|v)alue", "groupByNode")),
    "loki": Trigger(("serverAddress",), (), (*_QUERY, *_LOGIN, "tenantName", "metricName")),
    "memory": _RESOURCE,
    "metrics-api": Trigger(
        ("url",),
        (),
        (
            *_LOGIN,
            "(activationT|t)argetValue",
            "format",
            "valueLocation",
            "unsafeSsl",
            "aggregateFromKubeServiceEndpoints",
            "aggregationType",
            "timeout",
            "metricName",
        ),
    ),
    "mysql": Trigger(
        hosts=("host",),
        words=("port",),
        names=("username", "dbName"),
        others=(*_environment("username", "password"), "query", "(activationQ|q)ueryValue", "metricName"),
    ),
    "nats-jetstream": Trigger(
        ("natsServerMonitoringEndpoint",),
        (),
        ("account", "accountID", "stream", "consumer", "(activationL|l)agThreshold", "useHttps"),
    ),
    "postgresql": Trigger(hosts=("host",), words=("port", "sslmode"), names=("userName", "dbName"), is_free=False),
    "prometheus": Trigger(
        ("serverAddress",),
        (),
        (*_QUERY, *_LOGIN, "queryParameters", "customHeaders", "namespace", "timeout", "identityOwner", "metricName"),
    ),
    "rabbitmq": Trigger(
        ("host",),
        (),
        (
            *_environment("username", "password"),
            *_LOGIN,
            "queueName",
            "queueLength",
            "mode",
            "(activationV|v)alue",
            "protocol",
            "vhostName",
            "useRegex",
            "excludeUnacknowledged",
            "pageSize",
            "operation",
            "timeout",
            "unsafeSsl",
            "metricName",
        ),
    ),
    "redis": _LISTS,
    "redis-cluster": _LISTS,
    "redis-cluster-streams": _STREAMS,
    "redis-sentinel": _LISTS,
    "redis-sentinel-streams": _STREAMS,
    "redis-streams": _STREAMS,
    "temporal": Trigger(
        hosts=("endpoint",),
        others=(
            *_either(
                "namespace", "taskQueue", "workerDeploymentName", "workerDeploymentBuildId", "workflowTaskQueueForCount"
            ),
            *_environment("apiKey"),
            "(activationT|t)argetQueueSize",
            "queueTypes",
            "includeRunningWorkflowCount",
            "minConnectTimeout",
            "enableTLS",
            "tlsServerName",
            "unsafeSsl",
        ),
    ),
}
"""The triggers by their type."""


def _keys(fields: Mapping[str, Iterable[str]]) -> str:
    """Return a pattern of RE2 and Python for `TYPE/KEY` of fields by the type of the trigger."""
    return "|".join(f"{type_}/({'|'.join(names)})" for type_, names in fields.items() if names)


FREE_TRIGGERS = tuple(type_ for type_, trigger in TRIGGERS.items() if trigger.is_free)
"""Types of triggers for which a tenant needs no grant."""

SERVER_KEYS = _keys({type_: trigger.servers for type_, trigger in TRIGGERS.items()})
HOST_KEYS = _keys({type_: trigger.hosts for type_, trigger in TRIGGERS.items()})
WORD_KEYS = _keys({type_: trigger.words for type_, trigger in TRIGGERS.items()})
NAME_KEYS = _keys({type_: trigger.names for type_, trigger in TRIGGERS.items()})
FREE_KEYS = _keys(
    {
        type_: (*row.servers, *row.hosts, *row.words, *row.names, *row.others)
        for type_, row in TRIGGERS.items()
        if row.is_free
    }
)
"""Patterns of RE2 and Python for the whole of `TYPE/KEY`: of servers, of hosts, of words, of names, and of every field
of a trigger that needs no grant."""

AGGREGATED = "aggregateFromKubeServiceEndpoints"
"""The field of `metrics-api` by which `url` is the name of a Service whose endpoints KEDA asks."""

FILE_KEYS = ".*File"
"""Keys of fields that name a file of KEDA's own pod: `tlsCertFile` of `external` and `external-push` in older versions
(external_scaler.go), and `credentialsFromEnvFile` of Google's triggers (gcp/gcp_common.go)."""

WORDS = r"[A-Za-z0-9_-]*(,[A-Za-z0-9_-]*)*"
"""The whole value of a field with words."""

NAMES = r"[A-Za-z0-9_.@$+~-]*"
"""The whole value of a field with a name."""

PARAMETERS = (
    "account|accountID|apiKey|authModes?|authToken|bearerToken|[cC]ert|ca|caCert|clientID|clientSecret|customAuthHeader"
    "|customAuthValue|database|endpointParams|index|key|keyParamName|keyPassword|method|organizationName|password|protocol"
    "|sasl|scopes?|sentinelMaster|sentinelPassword|sentinelUsername|tls|tlsClientCert|tlsClientKey|token|user[nN]ame"
    "|vhostName"
)
"""Parameters of TriggerAuthentications for these triggers that name no server; a pattern for whole names."""

SERVER_PARAMETERS = (
    "address(es)?|bootstrapServers|cloudID|connection|connectionString|dbName|endpoints?|hosts?|kerberosConfig"
    "|natsServerMonitoringEndpoint|oauthTokenEndpointUri|oauthTokenURI|ports?|scalerAddress|serverAddress|serverURL|sslmode"
    "|url"
)
"""Parameters of TriggerAuthentications that name servers, or are joined with them to one text; a pattern for whole
names."""
