#!/usr/bin/env bash
# clang-tidy over the sources of the release build: lint.sh [file...]
set -euo pipefail
cd "$(dirname "$0")/.."
[[ -f build/compile_commands.json ]] || cmake --preset release >/dev/null
if [[ $# -gt 0 ]]; then
  files=("$@")
else
  mapfile -t files < <(git ls-files 'runtime/*.cpp' 'rendezvous/*.cpp' 'agent/*.cpp' 'apps/*.cpp')
fi
printf '%s\0' "${files[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy -p build --quiet
