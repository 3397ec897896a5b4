# Runs a command unless a file exists, which is printed instead: unless_file.sh FILE COMMAND...
if [ -e "$1" ]; then
  exec cat "$1"
fi
shift
exec "$@"
