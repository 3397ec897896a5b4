# Sourced by the steps of the action. From here on, until the step calls `resume` or ends, the runner obeys no command in
# what the step prints: messages, also those of errors, contain text of users.
exec 2>&1  # the runner reads both streams, in any order
pause="$(python3 -I -c 'import secrets; print(secrets.token_hex(16))')"
resume() {
  trap - EXIT
  printf '\n::%s::\n' "$pause"
}
trap resume EXIT
echo "::stop-commands::$pause"
