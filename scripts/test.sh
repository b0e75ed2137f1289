#!/usr/bin/env bash
# What proves the product: builds release, checks the format, runs the suite through CTest (under 45 minutes on two
# cores). test.sh --full adds the long rest: soaks, lint, and the suite under ASan+UBSan and TSan.
# TP_NO_TORCH=1 leaves out what needs PyTorch.
set -euo pipefail
cd "$(dirname "$0")/.."
full=0
for word in "$@"; do
  case $word in
    --full) full=1 ;;
    *) echo "test.sh: $word: no such option; usage: test.sh [--full]" >&2; exit 2 ;;
  esac
done

bash scripts/packages.sh test
bash scripts/build.sh release
bash scripts/format.sh --check
if [[ ${TP_NO_TORCH:-0} != 1 ]]; then
  if python=$(bash scripts/torch.sh); then
    export TP_TORCH_PYTHON=$python
  else
    echo "test.sh: no torch: the tests that need it are skipped"
  fi
fi

[[ $full == 1 ]] && export TP_TEST_FULL=1
ctest --preset release --no-tests=error
if [[ $full == 1 ]]; then
  bash scripts/lint.sh
  for preset in asan tsan; do
    bash scripts/build.sh "$preset"
    ctest --preset "$preset" --no-tests=error
  done
fi
