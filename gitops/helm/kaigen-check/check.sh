#!/bin/sh
# A Helm post-renderer: prints the manifests unchanged if `kaigen check` finds no error, and fails if it does.
# Helm 4 runs it as a plugin, Helm 3 by its path. Additional arguments are passed to `kaigen check`: --post-renderer-args=--strict

# Helm 4 hides the standard error of a post-renderer, so print it where Helm itself would.
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
