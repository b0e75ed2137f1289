#!/usr/bin/env bash
# From a fresh clone to a trained model: installs what is missing, builds release into build/, trains on 4 workers.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/packages.sh build
bash scripts/build.sh release tprun tpstore train
echo "quickstart.sh: build/bin/tprun --nproc-per-node=4 build/bin/train"
exec build/bin/tprun --nproc-per-node=4 build/bin/train
