# Builds an image with BuildKit, unless a file says that the registry has it: build.sh FILE ARGUMENTS...
found=$1
shift
[ -e "$found" ] || exec buildctl-daemonless.sh "$@"
