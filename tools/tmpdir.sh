#!/bin/sh
# Print a folder in memory for the files of tests, or nothing where there is none that programs may run from, or too
# little room. Many tests wait until files are on disk, which takes no time there.
set -eu
folder=/dev/shm
needed=6000000 # KiB
[ -d "$folder" ] && [ -w "$folder" ] || exit 0
[ "$(df -Pk "$folder" | awk 'NR == 2 {print $4}')" -gt "$needed" ] || exit 0
[ "$(awk '$1 == "MemAvailable:" {print $2}' /proc/meminfo)" -gt $((2 * needed)) ] || exit 0
program=$(mktemp "$folder/kaigen.XXXXXX")
trap 'rm -f "$program"' EXIT
printf '#!/bin/sh\n' > "$program"
chmod 700 "$program"
"$program" 2>/dev/null || exit 0
printf '%s\n' "$folder"
