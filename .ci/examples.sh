#!/usr/bin/env bash
# Runs every example/<name> that is a program, also one that is a module of its own. Each asserts its own outcome and
# exits non-zero otherwise.
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
    module=. package=./$name
    if [[ -f $name/go.mod ]]; then
        module=$name package=.
        (cd "$module" && "$GO" build -o /dev/null ./...)
    fi
    [[ $(cd "$module" && "$GO" list -e -f '{{.Name}}' "$package" 2>/dev/null) == main ]] || continue
    echo "== example: $name"
    if ! (cd "$module" && ${limit[@]+"${limit[@]}"} "$GO" run "$package"); then
        echo "example $name failed" >&2
        exit 1
    fi
    ran=$((ran + 1))
done
echo "== examples: $ran ran"
