#!/usr/bin/env bash
# Configures and builds a preset: build.sh [release|debug|asan|tsan] [target...]
# Programs land in <build folder>/bin, tests and benchmarks in <build folder>/tests-bin. Uses all cores; JOBS=N for fewer.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
cmake --preset "$preset" >/dev/null
targets=()
[[ $# -gt 0 ]] && targets=(--target "$@")
cmake --build --preset "$preset" -j "${JOBS:-$(nproc)}" "${targets[@]}"
