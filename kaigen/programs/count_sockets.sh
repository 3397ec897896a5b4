# Fails if fewer sockets of the pod match an expression: count_sockets.sh NUMBER EXPRESSION
[ "$(grep -Ec "$2" /proc/net/tcp)" -ge "$1" ]
