#!/usr/bin/env bash
# Runs every example/<name> that is a program. Each asserts its own outcome and exits non-zero otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."

GO=${GO:-go}

limit=()
if command -v timeout >/dev/null; then
    limit=(timeout -k 10 "${EXAMPLE_TIMEOUT:-120}")
fi

if [[ ! -d example ]]; then
    echo "== examples: none yet"
    exit 0
fi
cd example

# Compiling is not the example's time.
"$GO" build -o /dev/null ./...

ran=0
for dir in */; do
    name=${dir%/}
    [[ $("$GO" list -e -f '{{.Name}}' "./$name" 2>/dev/null) == main ]] || continue
    echo "== example: $name"
    if ! ${limit[@]+"${limit[@]}"} "$GO" run "./$name"; then
        echo "example $name failed" >&2
        exit 1
    fi
    ran=$((ran + 1))
done
echo "== examples: $ran ran"
