"""Peers of NetworkPolicies that several tests expect."""

ANYWHERE = [
    {
        "ipBlock": {
            "cidr": "0.0.0.0/0",
            "except": ["169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"],
        }
    },
    {
        "ipBlock": {
            "cidr": "::/0",
            "except": [
                "fe80::/10",
                "fd00:ec2::/32",
                "fd20:ce::254/128",
                "fd00:100::100:200/128",
                "fd00:c1::a9fe:a9fe/128",
                "fd00:42::42/128",
                "fd00:a9fe:a9fe::1/128",
            ],
        }
    },
]
"""Any address but those of nodes, and of the metadata of clouds."""
