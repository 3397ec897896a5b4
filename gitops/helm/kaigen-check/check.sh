#!/bin/sh
# A post-renderer of Helm: passes the manifests on as they are when `kaigen check` finds nothing wrong, else fails.
# Helm 4 calls it as a plugin, Helm 3 by its path. More arguments go to `kaigen check`: --post-renderer-args=--strict

# Helm 4 keeps what a post-renderer says on standard error to itself, so this says it where Helm itself would.
if [ -n "${HELM_PLUGIN_NAME:-}" ]; then
    for place in "/proc/$PPID/fd/2" /dev/tty; do
        if (: >>"$place") 2>/dev/null; then
            exec 2>>"$place"
            break
        fi
    done
fi
if ! command -v kaigen >/dev/null; then
    echo "kaigen-check: kaigen is not on the PATH: pip install kaigen" >&2
    exit 3
fi
exec kaigen check --passthrough "$@"
