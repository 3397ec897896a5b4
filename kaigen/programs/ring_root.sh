# Runs the root of a ring, which the arguments name. As the first process of the container it would ignore SIGTERM.
stop() { kill -TERM "$child" 2>/dev/null; wait "$child"; exit 143; }
trap stop TERM INT
"$@" &
child=$!
wait "$child"
