#!/usr/bin/env bash
# Whole hosts under random chaos on a clock of their own, with fresh seeds: simulate.sh [SEED] [STEPS]
# SEED: the first of the runs (else drawn). STEPS: of chaos in all (10,000,000), 3,000 in a run. A failure names its seed;
# TP_LOUD=1 simulate.sh SEED 3000 tells that run line by line. The test must have been built (scripts/build.sh release).
set -euo pipefail
cd "$(dirname "$0")/.."
seed=${1:-$(od -An -N5 -tu8 /dev/urandom | tr -d ' ')}
steps=${2:-10000000}
for word in "$seed" "$steps"; do
  [[ $word =~ ^[0-9]+$ ]] || { echo "simulate.sh: $word: not a number; usage: simulate.sh [SEED] [STEPS]" >&2; exit 2; }
done
binary=${TP_BIN_DIR:-build/bin}/simulation_test
[[ -x $binary ]] || { echo "simulate.sh: $binary is not there; run scripts/build.sh release" >&2; exit 2; }
runs=$(((steps + 2999) / 3000))
echo "simulate.sh: $runs runs from seed $seed"
TP_SEED=$seed TP_SEEDS=$runs exec "$binary" "fresh seeds"
