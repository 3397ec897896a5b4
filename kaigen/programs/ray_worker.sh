# Waits for the Ray head, then joins it as a worker until it stops.
until ray health-check --address "$LEADER:$RAY_PORT" 2>/dev/null; do sleep 2; done
exec ray start --block --address="$LEADER:$RAY_PORT" --disable-usage-stats
