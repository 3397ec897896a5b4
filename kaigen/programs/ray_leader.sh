# Starts the Ray head, waits for the other nodes, then runs the engine, which the arguments name.
set -e
ray start --head --port="$RAY_PORT" --disable-usage-stats
python3 - "$NODES" <<'END'
import sys, time
import ray
ray.init(address="auto")
while sum(node["Alive"] for node in ray.nodes()) < int(sys.argv[1]):
    time.sleep(2)
END
exec "$@"
