#!/usr/bin/env bash
# Checks what no compiler does: licence headers, paths of somebody's machine, merge
# leftovers, and links between the documents. Looks at the files that git knows or would add.
set -euo pipefail
cd "$(dirname "$0")/.."

faults=0
fault() {
    echo "repo-check: $*" >&2
    faults=$((faults + 1))
}

# files PATTERN... prints those that exist, one a line.
files() {
    git ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r file; do
        if [[ -f $file ]]; then printf '%s\n' "$file"; fi
    done
}

read -r -d '' header <<'EOF' || true
// Copyright The Weir Authors.
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.
EOF
header_lines=$(wc -l <<<"$header")

# 1. Every Go file has the header, or says that it is generated.
go_files=0
while IFS= read -r file; do
    go_files=$((go_files + 1))
    if [[ $(head -n "$header_lines" "$file") == "$header" ]]; then
        if [[ -n $(sed -n "$((header_lines + 1))p" "$file") ]]; then
            fault "$file: no empty line after the licence header"
        fi
    elif ! grep -q '^// Code generated .* DO NOT EDIT\.$' "$file"; then
        fault "$file: does not start with the licence header"
    fi
done < <(files '*.go')

# matches REGEXP prints where it occurs, and fails only if git does.
matches() {
    git grep -nIE --untracked "$1" | cut -c 1-160 || [[ ${PIPESTATUS[0]} == 1 ]]
}

# 2. No paths of a machine. The pattern is put together so that it does not match here.
homes='work|root|Users|home/[a-z]+'
hits=$(matches "(^|[^A-Za-z0-9_.})])/($homes)/")
while IFS= read -r hit; do
    if [[ -n $hit ]]; then fault "$hit: path of a machine"; fi
done <<<"$hits"

# 3. No leftovers of a merge.
hits=$(matches '^(<{7}|>{7})( |$)')
while IFS= read -r hit; do
    if [[ -n $hit ]]; then fault "$hit: left over from a merge"; fi
done <<<"$hits"

# 4. Links in Markdown lead to a file or a folder. Code blocks and code spans are no links.
links() {
    awk '
        /^[ \t]*(```|~~~)/ { fenced = !fenced; next }
        fenced { next }
        {
            line = $0
            gsub(/`[^`]*`/, "", line)
            if (match(line, /^ *\[[^]]+\]: +[^ ]+/)) {
                ref = substr(line, RSTART, RLENGTH)
                sub(/^ *\[[^]]+\]: +/, "", ref)
                print FNR "\t" ref
            }
            while (match(line, /\]\([^()[:space:]]+[^()]*\)/)) {
                target = substr(line, RSTART + 2, RLENGTH - 3)
                sub(/[[:space:]].*$/, "", target)
                print FNR "\t" target
                line = substr(line, RSTART + RLENGTH)
            }
        }' "$1"
}

# has_heading FILE ANCHOR: GitHub makes an anchor of a heading by lower case, dropping punctuation, spaces to hyphens.
has_heading() {
    awk -v want="$2" '
        /^[ \t]*(```|~~~)/ { fenced = !fenced; next }
        !fenced && /^#+ / {
            text = tolower($0)
            sub(/^#+ +/, "", text)
            sub(/ +#* *$/, "", text)
            gsub(/[][!-,.\/:-@\\^`{-~]/, "", text)
            gsub(/ /, "-", text)
            if (text == want || index(want, text "-") == 1 && substr(want, length(text) + 2) ~ /^[0-9]+$/) { found = 1; exit }
        }
        index($0, "id=\"" want "\"") || index($0, "name=\"" want "\"") { found = 1; exit }
        END { exit !found }' "$1"
}

link_count=0
while IFS= read -r doc; do
    while IFS=$'\t' read -r line target; do
        case $target in
        *://* | mailto:*) continue ;;
        esac
        link_count=$((link_count + 1))
        path=${target%%#*}
        anchor=
        if [[ $target == *#* ]]; then anchor=${target#*#}; fi
        case $path in
        '') file=$doc ;;
        /*) file=.$path ;;
        *) file=$(dirname "$doc")/$path ;;
        esac
        if [[ ! -e $file ]]; then
            fault "$doc:$line: link to $target, but there is no $file"
        elif [[ $anchor =~ ^[a-zA-Z0-9_-]+$ && $file == *.md ]] && ! has_heading "$file" "$anchor"; then
            fault "$doc:$line: link to $target, but $file has no such heading"
        fi
    done < <(links "$doc")
done < <(files '*.md')

# 5. Scripts can be run.
while IFS= read -r script; do
    bash -n "$script" || fault "$script: bash cannot read it"
    [[ -x $script ]] || fault "$script: is not executable"
done < <(files '.ci/run' '.ci/*.sh')

if ((faults > 0)); then
    echo "repo-check: $faults faults" >&2
    exit 1
fi
echo "repo-check: $go_files Go files and $link_count links are fine"
