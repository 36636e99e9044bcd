#!/usr/bin/env bash
# Usage: .ci/fuzz.sh MODULE...
# Fuzzes every fuzz function of each module for FUZZTIME. go fuzzes one function of one package at a time,
# so they are listed first.
set -euo pipefail
cd "$(dirname "$0")/.."

GO=${GO:-go}
FUZZTIME=${FUZZTIME:-10s}

# fuzz_packages prints the packages of the module in the current folder that may have a fuzz function: a look at
# their text saves building every other package's tests only to list them.
fuzz_packages() {
    "$GO" list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r pkg dir; do
        if grep -qs '^func Fuzz' "$dir"/*_test.go; then echo "$pkg"; fi
    done
}

# fuzz PACKAGE NAME runs one function. When the time is up, go before 1.27 now and then reports "context deadline
# exceeded" although no input failed (golang.org/issue/75804): that, and nothing else, is tried again.
fuzz() {
    local out try status=1
    out=$(mktemp)
    for try in 1 2 3; do
        if "$GO" test -run '^$' -fuzz "^$2\$" -fuzztime "$FUZZTIME" "$1" 2>&1 | tee "$out"; then
            status=0
            break
        fi
        grep -q '^ *context deadline exceeded$' "$out" || break
        ! grep -q 'Failing input written\|panic:\|DATA RACE' "$out" || break
        echo "no input failed, go's own deadline did (try $try of 3)"
    done
    rm -f "$out"
    return "$status"
}

count=0
for module in "$@"; do
    packages=$(cd "$module" && fuzz_packages)
    for pkg in $packages; do
        listed=$(cd "$module" && "$GO" test -list '^Fuzz' "$pkg") || {
            echo "$listed"
            exit 1
        }
        for name in $(grep '^Fuzz' <<<"$listed" || true); do
            echo "== fuzz: $pkg $name for $FUZZTIME"
            (cd "$module" && fuzz "$pkg" "$name")
            count=$((count + 1))
        done
    done
done
echo "== fuzz: $count functions, $FUZZTIME each"
