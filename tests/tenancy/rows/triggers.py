"""Scalers of KEDA: the servers, texts and files of their triggers."""

from __future__ import annotations

from tests.tenancy.objects import object_of, pod
from tests.tenancy.tenants import Body


def _scaler(kind: str = "TriggerAuthentication", **metadata: str) -> Body:
    known = {"query": "x", "threshold": "1", "serverAddress": "http://p.team-a.svc:9090"}
    trigger = {
        "type": "prometheus",
        "metadata": {**known, **metadata},
        "authenticationRef": {"name": "x", "kind": kind},
    }
    spec = {"scaleTargetRef": {"name": "x"}, "triggers": [trigger]}
    return object_of("keda.sh/v1alpha1", "ScaledObject", spec=spec)


def _triggered(type_: str, /, kind: str = "ScaledObject", **metadata: str) -> Body:
    """Return a scaler with one trigger."""
    trigger = {"type": type_, "metadata": metadata}
    if kind == "ScaledJob":
        job = {"template": {"spec": {**pod()["spec"], "restartPolicy": "Never"}}}
        return object_of("keda.sh/v1alpha1", kind, spec={"jobTargetRef": job, "triggers": [trigger]})
    return object_of("keda.sh/v1alpha1", kind, spec={"scaleTargetRef": {"name": "x"}, "triggers": [trigger]})


SERVERS: dict[str, bool] = {
    "p.team-a.svc": True,
    "p.team-a.svc:9090": True,
    "p.team-a.svc.cluster.local:9090": True,
    "http://p.team-a.svc:9090": True,
    "tcp://p.team-a.svc:9090/x?y=z": True,
    "prometheus.monitoring:9090": True,
    "x.metrics.example.com": True,
    "p.team-a.svc:9090,q.team-a.svc:9090": True,
    "p.team-a.svc, q.team-a.svc ": True,
    "p.team-b.svc:9090": False,
    "http://p.team-b.svc:9090": False,
    "p.team-b": False,
    "p": False,
    "": False,
    "10.0.0.1:6379": False,
    "[fd00::1]:6379": False,
    "169.254.169.254": False,
    "p.team-a.svc,p.team-b.svc": False,
    "p.team-b.svc,p.team-a.svc": False,
    "p.team-b.svc:9090/p.team-a.svc": False,
    "p.team-b.svc#.team-a.svc": False,
    "p.team-b.svc?x.team-a.svc": False,
    "p.team-a.svc@p.team-b.svc": False,
    "user:pw@p.team-b.svc": False,
    "http://p.team-a.svc:80@p.team-b.svc": False,
    "http://p.team-a.svc%2fp.team-b.svc": False,
    "http://p.team-a.svc/x%2Chttp://p.team-b.svc": False,
    "p.team-a.svc\\p.team-b.svc": False,
    "p.team-a.svc p.team-b.svc": False,
    "p.team-a.svc\np.team-b.svc": False,
    "p.team-a.svc:": False,
    "p.team-a.svc:x": False,
    "//p.team-b.svc": False,
    "http:p.team-b.svc": False,
}
"""Values of fields of triggers with servers, and whether the tenant may have them."""

_TRIGGER_SERVERS = (
    ("external", "scalerAddress"),
    ("external-push", "scalerAddress"),
    ("redis", "address"),
    ("redis-cluster", "addresses"),
    ("redis-streams", "host"),
    ("redis-sentinel", "hosts"),
    ("postgresql", "host"),
    ("mysql", "host"),
    ("rabbitmq", "host"),
    ("kafka", "bootstrapServers"),
    ("apache-kafka", "bootstrapServers"),
    ("nats-jetstream", "natsServerMonitoringEndpoint"),
    ("metrics-api", "url"),
    ("loki", "serverAddress"),
    ("graphite", "serverAddress"),
    ("influxdb", "serverURL"),
    ("elasticsearch", "addresses"),
    ("temporal", "endpoint"),
    ("etcd", "endpoints"),
    ("prometheus", "serverAddress"),
)

_TRIGGER_URLS = (
    ("rabbitmq", "host"),
    ("nats-jetstream", "natsServerMonitoringEndpoint"),
    ("metrics-api", "url"),
    ("loki", "serverAddress"),
    ("graphite", "serverAddress"),
    ("influxdb", "serverURL"),
    ("elasticsearch", "addresses"),
    ("etcd", "endpoints"),
    ("prometheus", "serverAddress"),
)
"""Fields of triggers that may have a URL."""

_JOINED = (
    ("postgresql", "userName"),
    ("postgresql", "dbName"),
    ("postgresql", "port"),
    ("postgresql", "sslmode"),
    ("mysql", "username"),
    ("mysql", "dbName"),
    ("mysql", "port"),
)
"""Fields of triggers that KEDA joins with the host to one text."""

_SMUGGLING = (
    " host=db.team-b.svc",
    "x host=db.team-b.svc",
    "x\thost=db.team-b.svc",
    "x\nhost=db.team-b.svc",
    "x\rhost=db.team-b.svc",
    "x\vhost=db.team-b.svc",
    "x\fhost=db.team-b.svc",
    "x\u00a0host=db.team-b.svc",
    "x' host='db.team-b.svc",
    "'x",
    "x\\",
    "x\\' host=db.team-b.svc",
    'x" host="db.team-b.svc',
    "3306)@tcp(db.team-b.svc:3306)/x",
    "x@tcp(db.team-b.svc)/x",
    "x?allowAllFiles=true",
    "x/y",
    "x\n",
)
"""Texts by which a connection text would name another server, or another option."""

DENIED: dict[str, tuple[Body, str]] = {
    **{
        f"server {number} of redis": (_triggered("redis", address=server, listName="x"), "the server `")
        for number, (server, granted) in enumerate(SERVERS.items())
        if not granted
    },
    **{
        f"server {number} of loki": (_triggered("loki", serverAddress=server), "the server `")
        for number, (server, granted) in enumerate(SERVERS.items())
        if not granted
    },
    **{
        f"{key} of {type_}": (
            _triggered(type_, **{key: "internal.team-b.svc:9090"}),
            "the server `internal.team-b.svc:9090`",
        )
        for type_, key in _TRIGGER_SERVERS
    },
    **{
        f"{key} of {type_}": (_triggered(type_, **{key: "x"}), f"a trigger with the field `{key}`")
        for type_, key in (
            ("redis", "addressFromEnv"),
            ("redis", "hostFromEnv"),
            ("redis-sentinel", "hostsFromEnv"),
            ("rabbitmq", "hostFromEnv"),
            ("mysql", "connectionStringFromEnv"),
            ("kafka", "bootstrapServersFromEnv"),
            ("temporal", "endpointFromEnv"),
            ("elasticsearch", "cloudID"),
            ("cron", "address"),
            ("kubernetes-workload", "namespace"),
        )
    },
    **{
        f"trigger {type_}": (_triggered(type_, host="p.team-a.svc"), f"a trigger of type `{type_}`")
        for type_ in ("mongodb", "azure-queue", "gcp-pubsub", "artemis-queue", "Redis", "redis ", "new")
    },
    **{
        f"endpoints of {url}": (
            _triggered("metrics-api", url=url, aggregateFromKubeServiceEndpoints="true"),
            f"the {'server' if url.endswith('team-b.svc') else 'Service'} `{url}`",
        )
        for url in (
            "http://x.team-b.svc",
            "http://x.team-b.team-a.svc",
            "http://x.team-b.svc.team-a.svc",
            "x.team-a.svc",
        )
    },
    "trigger of a ScaledJob": (
        _triggered("redis", "ScaledJob", address="redis.team-b.svc:6379"),
        "the server `redis.team-b.svc:6379`",
    ),
    **{
        f"{key} of {type_} with {text!r}": (
            _triggered(type_, **{"host": "db.team-a.svc", key: text}),
            f"a trigger with the text `{text}`",
        )
        for type_, key in _JOINED
        for text in _SMUGGLING
    },
    **{
        f"host of {type_} with {text!r}": (
            _triggered(type_, host=f"db.team-a.svc{text}"),
            f"the server `db.team-a.svc{text}`",
        )
        for type_ in ("postgresql", "mysql")
        for text in (*_SMUGGLING, "/x)@tcp(db.team-b.svc")
    },
    **{
        f"{key} of {type_} at {server}": (_triggered(type_, **{key: server}), f"the server `{server}`")
        for type_, key in _TRIGGER_SERVERS
        for server in (
            "dns://p.team-a.svc/p.team-b.svc:80",
            "passthrough://p.team-a.svc/p.team-b.svc:80",
            "unix://p.team-a.svc/run/x.sock",
        )
    },
    **{
        f"URL of {type_}": (_triggered(type_, **{key: "http://p.team-a.svc/x"}), "the server `http://p.team")
        for type_, key in _TRIGGER_SERVERS
        if (type_, key) not in _TRIGGER_URLS
    },
    **{
        f"file {key} of {type_}": (
            _triggered(type_, **{key: "/var/run/secrets/x"}),
            f"a file of KEDA's own pod by `{key}`",
        )
        for type_, key in (
            ("external", "tlsCertFile"),
            ("external-push", "tlsCertFile"),
            ("aws-sqs-queue", "credentialsFromEnvFile"),
            ("redis", "caFile"),
        )
    },
    "URL of a granted trigger": (
        _triggered("aws-sqs-queue", queueURL="https://sqs.team-b.svc/x"),
        "the server `https://sqs.team-b.svc/x`",
    ),
    **{
        f"server {number} of a scaler": (_scaler(serverAddress=url), f"the server `{url}`")
        for number, url in enumerate(
            (
                "http://p.team-b.svc:9090",
                "http://p.team-a:9090",
                "http://p:9090",
                "http://p.team-a.svc@p.team-b.svc",
                "http://p.team-b#.team-a.svc",
                "http://evil.example.org/x.metrics.example.com",
            )
        )
    },
    "identity of a scaler": (_scaler(identityOwner="operator"), "the identity of `operator`"),
    "authentication of the cluster": (
        _scaler("ClusterTriggerAuthentication"),
        "authentication of kind `ClusterTriggerAuthentication`",
    ),
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    **{
        f"server {number} of loki": _triggered("loki", serverAddress=server)
        for number, (server, granted) in enumerate(SERVERS.items())
        if granted
    },
    **{
        f"server {number} of redis": _triggered("redis", address=server, listName="x")
        for number, (server, granted) in enumerate(SERVERS.items())
        if granted and "://" not in server
    },
    **{f"{key} of {type_}": _triggered(type_, **{key: "internal.team-a.svc:9090"}) for type_, key in _TRIGGER_SERVERS},
    "trigger of the time": _triggered("cron", timezone="UTC", start="0 6 * * *", end="0 20 * * *", desiredReplicas="1"),
    "trigger of the load": _triggered("cpu", value="50"),
    "endpoints of a Service": _triggered(
        "metrics-api", url="http://router.team-a.svc:9901/stats?usedonly", aggregateFromKubeServiceEndpoints="true"
    ),
    "trigger of pods": _triggered("kubernetes-workload", podSelector="app=x", value="1"),
    "trigger of redis": _triggered(
        "redis-streams",
        host="a.team-a.svc,b.team-a.svc",
        port="6379,6380",
        passwordFromEnv="PASSWORD",
        stream="x",
        consumerGroup="x",
    ),
    "trigger of an own scaler": _triggered("external", scalerAddress="s.team-a.svc:80", anyKey="x"),
    "trigger of a ScaledJob": _triggered("redis", "ScaledJob", address="redis.team-a.svc:6379", listName="x"),
    "trigger of PostgreSQL": _triggered(
        "postgresql",
        host="db.team-a.svc",
        port="5432",
        userName="team-a@db",
        dbName="orders_2026",
        sslmode="verify-full",
        passwordFromEnv="PASSWORD",
        query="SELECT count(*) FROM \"orders\" WHERE state = 'new'",
        targetQueryValue="5",
    ),
    "trigger of MySQL": _triggered(
        "mysql",
        host="db.team-a.svc",
        port="3306",
        username="team-a",
        dbName="orders",
        passwordFromEnv="PASSWORD",
        query="SELECT count(*) FROM orders WHERE state = 'new'",
        queryValue="5",
    ),
    "trigger of a granted type": _triggered("aws-sqs-queue", queueURL="queue", awsRegion="eu-central-1"),
    "scaler": _scaler(identityOwner="pod"),
    "scaler of a server": _scaler(serverAddress="https://a.metrics.example.com/x?y"),
}
"""Objects that the tenant may have."""
