# Runs a worker of a ring again whenever it ends: it does when its root does not find all workers, which is not a failure.
stop() { kill -TERM "$child" 2>/dev/null; exit 0; }
trap stop TERM INT
while :; do
  "$@" &
  child=$!
  wait "$child"
  echo "ring: the worker ended with code $?, and starts again" >&2
  sleep 1
done
