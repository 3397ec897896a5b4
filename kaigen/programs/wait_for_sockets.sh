# Waits until no socket of the pod matches an expression: wait_for_sockets.sh SECONDS EXPRESSION
left=$1
while [ "$left" -gt 0 ] && grep -Eq "$2" /proc/net/tcp; do
  sleep 1
  left=$((left - 1))
done
