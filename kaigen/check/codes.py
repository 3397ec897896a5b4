"""The codes of the checks of objects, with a short title each."""

from __future__ import annotations

# Schema
UNKNOWN_KIND = "KG0501"
KIND_NOT_SERVED = "KG0502"
KIND_DEPRECATED = "KG0503"
UNKNOWN_FIELD = "KG0504"
MISSING_FIELD = "KG0505"
WRONG_TYPE = "KG0506"
BAD_VALUE = "KG0507"
OUT_OF_RANGE = "KG0508"
DUPLICATE_ENTRY = "KG0509"
FIELD_CONFLICT = "KG0510"
SELECTOR_MISMATCH = "KG0511"
UNKNOWN_NAME_IN_POD = "KG0512"

# Pod Security Standards, a code for each control
HOST_NAMESPACES = "KG0520"
HOST_PATH = "KG0521"
HOST_PORT = "KG0522"
PROBE_HOST = "KG0523"
PRIVILEGED = "KG0524"
CAPABILITIES = "KG0525"
SECCOMP = "KG0526"
RUN_AS_NON_ROOT = "KG0527"
RUN_AS_ROOT_USER = "KG0528"
PRIVILEGE_ESCALATION = "KG0529"
PROC_MOUNT = "KG0530"
SYSCTL = "KG0531"
APPARMOR = "KG0532"
SELINUX = "KG0533"
WINDOWS_HOST_PROCESS = "KG0534"
VOLUME_TYPE = "KG0535"

# Names, labels, sizes
NAME_INVALID = "KG0540"
NAME_TOO_LONG = "KG0541"
NAME_MISSING = "KG0542"
NAME_GENERATED = "KG0543"
NAMESPACE_ON_CLUSTER_KIND = "KG0544"
LABEL_INVALID = "KG0545"
ANNOTATION_INVALID = "KG0546"
TOO_LARGE = "KG0547"
DATA_KEY_INVALID = "KG0548"
POD_NAME_INVALID = "KG0549"
ENV_NAME_INVALID = "KG0550"
PORT_NAME_INVALID = "KG0551"

# Resources
REQUEST_MISSING = "KG0560"
REQUEST_AND_LIMIT_DISAGREE = "KG0561"
RESOURCE_NAME_INVALID = "KG0562"
AMOUNT_DOUBTFUL = "KG0563"

# What does not belong in Git
SECRET_OBJECT = "KG0565"
SECRET_VALUE = "KG0566"
SECRET_LITERAL = "KG0567"
STATUS_PRESENT = "KG0568"

# References between the objects of an app
REFERENCE_UNRESOLVED = "KG0570"
SELECTS_NO_PODS = "KG0571"
PORT_UNRESOLVED = "KG0572"
DUPLICATE_OBJECT = "KG0573"

TITLES: dict[str, str] = {
    UNKNOWN_KIND: "unknown apiVersion and kind",
    KIND_NOT_SERVED: "kind not served by the target version",
    KIND_DEPRECATED: "deprecated apiVersion",
    UNKNOWN_FIELD: "unknown field",
    MISSING_FIELD: "required field missing",
    WRONG_TYPE: "value of the wrong type",
    BAD_VALUE: "value not allowed",
    OUT_OF_RANGE: "value, length or count out of range",
    DUPLICATE_ENTRY: "entry given twice",
    FIELD_CONFLICT: "fields that contradict each other",
    SELECTOR_MISMATCH: "selector does not match its own template",
    UNKNOWN_NAME_IN_POD: "name not defined in the pod",
    HOST_NAMESPACES: "Pod Security: host namespaces",
    HOST_PATH: "Pod Security: hostPath volume",
    HOST_PORT: "Pod Security: host port",
    PROBE_HOST: "Pod Security: host of a probe or lifecycle hook",
    PRIVILEGED: "Pod Security: privileged container",
    CAPABILITIES: "Pod Security: capabilities",
    SECCOMP: "Pod Security: seccomp profile",
    RUN_AS_NON_ROOT: "Pod Security: runAsNonRoot",
    RUN_AS_ROOT_USER: "Pod Security: runAsUser 0",
    PRIVILEGE_ESCALATION: "Pod Security: privilege escalation",
    PROC_MOUNT: "Pod Security: procMount",
    SYSCTL: "Pod Security: sysctl",
    APPARMOR: "Pod Security: AppArmor profile",
    SELINUX: "Pod Security: SELinux options",
    WINDOWS_HOST_PROCESS: "Pod Security: Windows HostProcess",
    VOLUME_TYPE: "Pod Security: volume type",
    NAME_INVALID: "invalid object name",
    NAME_TOO_LONG: "object name too long",
    NAME_MISSING: "object without a name",
    NAME_GENERATED: "generated name in Git",
    NAMESPACE_ON_CLUSTER_KIND: "namespace on a cluster-scoped object",
    LABEL_INVALID: "invalid label",
    ANNOTATION_INVALID: "invalid annotation key",
    TOO_LARGE: "object part too large for the API server",
    DATA_KEY_INVALID: "invalid key of a ConfigMap or Secret",
    POD_NAME_INVALID: "invalid container or volume name",
    ENV_NAME_INVALID: "invalid environment variable name",
    PORT_NAME_INVALID: "invalid port name",
    REQUEST_MISSING: "container without a cpu or memory request",
    REQUEST_AND_LIMIT_DISAGREE: "request and limit disagree",
    RESOURCE_NAME_INVALID: "invalid resource name",
    AMOUNT_DOUBTFUL: "amount of a resource that cannot be meant",
    SECRET_OBJECT: "Secret with its values",
    SECRET_VALUE: "value that looks like a credential",
    SECRET_LITERAL: "literal value of a variable that names a secret",
    STATUS_PRESENT: "status in a written object",
    REFERENCE_UNRESOLVED: "reference to an object that is not there",
    SELECTS_NO_PODS: "selector matches no pod",
    PORT_UNRESOLVED: "port that no container has",
    DUPLICATE_OBJECT: "object given twice",
}
