# Runs a command in a folder: in_folder.sh FOLDER COMMAND...
cd "$1" || exit 1
shift
exec "$@"
