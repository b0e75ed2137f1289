#!/usr/bin/env bash
# Formats the C++ sources in place; with --check only says what is not formatted, and fails.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
[[ ${1:-} == --check ]] && mode=(--dry-run --Werror)
formatter=clang-format
command -v clang-format-14 >/dev/null && formatter=clang-format-14
git ls-files -z '*.cpp' '*.hpp' | xargs -0 -r "$formatter" "${mode[@]}"
