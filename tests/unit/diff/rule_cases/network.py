"""Who can reach what."""

from __future__ import annotations

from tests.unit.diff.diff_cases import deployment, with_
from tests.unit.diff.rule_cases.objects import Case, ingress, policy, route, service, split

CASES: list[Case] = [
    Case(
        "service-type",
        "opened",
        service(),
        service(type="LoadBalancer"),
        [("notice", "Service is of type LoadBalancer instead of ClusterIP: reachable from outside the cluster")],
    ),
    Case(
        "service-type",
        "closed",
        service(type="NodePort"),
        service(type="ClusterIP"),
        [("notice", "Service is of type ClusterIP instead of NodePort: no longer reachable from outside the cluster")],
    ),
    Case(
        "service-type",
        "another way in",
        service(type="NodePort"),
        service(type="LoadBalancer"),
        [("notice", "Service is of type LoadBalancer instead of NodePort: reachable in another way")],
    ),
    Case("service-type", "a new, inner Service", None, service(), []),
    Case(
        "service-ports",
        "another port",
        service(),
        service(ports=[{"port": 8080}]),
        [("notice", "Service no longer listens on port 80, but on 8080: update the clients")],
    ),
    Case(
        "service-ports",
        "one more, and another target",
        service(),
        service(ports=[{"port": 80, "targetPort": "http"}, {"port": 53, "protocol": "UDP"}]),
        [
            ("notice", "port 80 forwards to container port http instead of 80"),
            ("info", "Service also listens on port 53/UDP"),
        ],
    ),
    Case(
        "service-selector",
        "other pods",
        service(),
        service(selector={"app": "api"}),
        [("notice", "Service selects other pods: app=api instead of app=web")],
    ),
    *(
        Case(
            "route-hosts",
            f"another host of {make.__name__}",
            make("a.example", "web"),
            make("b.example", "web"),
            [("notice", "reachable at b.example"), ("notice", "no longer reachable at a.example")],
        )
        for make in (route, ingress)
    ),
    *(
        Case(
            "route-hosts",
            f"another host of the annotation {key}",
            None,
            with_(body, "metadata/annotations", {key: "b.example, c.example"}),
            [("notice", "reachable at b.example and c.example")],
        )
        for body, key in (
            (service(), "external-dns.alpha.kubernetes.io/hostname"),
            (ingress("", "web"), "nginx.ingress.kubernetes.io/server-alias"),
        )
    ),
    Case("route-hosts", "a new route", None, route("a.example", "w"), [("notice", "reachable at a.example")]),
    *(
        Case(
            "route-backends",
            f"another backend of {make.__name__}",
            make("a.example", "web"),
            make("a.example", "api"),
            [("notice", "traffic goes to api instead of web")],
        )
        for make in (route, ingress)
    ),
    Case(
        "route-backends",
        "other weights",
        split(chat=1),
        split(chat=90, **{"chat-v2": 10}),
        [
            ("notice", "90 % of the requests go to chat, before 100 %"),
            ("notice", "10 % of the requests go to chat-v2, before 0 %"),
        ],
    ),
    Case(
        "route-backends",
        "the same name in another namespace",
        split(chat=1),
        split({"name": "chat", "namespace": "other", "port": 80, "weight": 9}, x=0),
        [
            ("notice", "0 % of the requests go to chat, before 100 %"),
            ("notice", "100 % of the requests go to other/chat, before 0 %"),
        ],
    ),
    Case(
        "route-backends",
        "a backend of another kind, and two ports of one",
        split(chat=1),
        split({"name": "chat", "port": 81, "weight": 1}, {"kind": "Bucket", "name": "b", "weight": 2}, chat=1),
        [
            ("notice", "25 % of the requests go to port 80 of chat, before 100 %"),
            ("notice", "25 % of the requests go to port 81 of chat, before 0 %"),
            ("notice", "50 % of the requests go to Bucket b, before 0 %"),
        ],
    ),
    Case(
        "policy-removed",
        "a policy whose pods stay",
        policy(policyTypes=["Ingress", "Egress"]),
        None,
        [
            (
                "danger",
                "no longer restricts ingress and egress of all pods of the namespace: traffic that no other "
                "policy restricts is allowed",
            )
        ],
        (deployment(),),
    ),
    Case(
        "policy-removed",
        "a policy that goes with its pods",
        policy(podSelector={"matchLabels": {"app": "web"}}),
        None,
        [("info", "is deleted together with its pods")],
    ),
    Case(
        "policy-changed",
        "one more peer",
        policy(ingress=[{"from": [{"podSelector": {"matchLabels": {"a": "b"}}}]}]),
        policy(
            ingress=[
                {"from": [{"podSelector": {"matchLabels": {"a": "b"}}}]},
                {
                    "from": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}],
                    "ports": [{"port": 443}, {"port": 53, "protocol": "UDP"}],
                },
            ]
        ),
        [("danger", "allows more: ingress from 0.0.0.0/0 without 10.0.0.0/8 on port 443 and port 53/UDP")],
    ),
    Case(
        "policy-changed",
        "any port instead of one",
        policy(egress=[{"ports": [{"port": 443}]}]),
        policy(egress=[{}]),
        [("danger", "allows more: egress to anywhere on every port")],
    ),
    Case(
        "policy-changed",
        "one port less",
        policy(ingress=[{"ports": [{"port": 1}, {"port": 2}]}]),
        policy(ingress=[{"ports": [{"port": 1}]}]),
        [("notice", "allows less: no ingress from anywhere on port 1 and port 2")],
    ),
    Case(
        "policy-changed",
        "a direction less and a direction more",
        policy(policyTypes=["Egress"]),
        policy(policyTypes=["Ingress"]),
        [("danger", "egress is no longer restricted"), ("notice", "ingress is now restricted")],
    ),
    Case(
        "policy-changed",
        "other pods",
        policy(),
        policy(podSelector={"matchLabels": {"a": "b"}}),
        [("danger", "network policy no longer applies to all pods of the namespace, but to pods with a=b")],
    ),
    Case("policy-changed", "a label", policy(), with_(policy(), "metadata/labels", {"a": "b"}), []),
    Case(
        "policy-added",
        "a policy",
        None,
        policy(podSelector={"matchExpressions": [{"key": "a", "operator": "Exists"}]}, egress=[{}]),
        [("notice", "restricts ingress and egress of its pods and allows egress to anywhere on every port")],
    ),
    Case(
        "policy-replaced",
        "the policy of a changed run",
        policy(ingress=[{}]),
        with_(policy(ingress=[{}]), "metadata/name", "web-2"),
        [("info", "NetworkPolicy web-2 replaces NetworkPolicy web with the same rules")],
    ),
    Case(
        "policy-replaced",
        "a policy with other rules",
        policy(ingress=[{}]),
        with_(policy(), "metadata/name", "web-2"),
        [],
    ),
]
