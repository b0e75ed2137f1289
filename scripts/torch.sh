#!/usr/bin/env bash
# Prints the python of a virtual environment that has the current torch, making it first if need be (about two minutes
# and 5 GB, under ~/.cache/tprun). TP_TORCH_PYTHON names one to use instead. Exits 1, with a reason, without torch.
set -euo pipefail
if [[ -n ${TP_TORCH_PYTHON:-} ]]; then
  "$TP_TORCH_PYTHON" -c 'import torch' || { echo "torch.sh: $TP_TORCH_PYTHON has no torch" >&2; exit 1; }
  echo "$TP_TORCH_PYTHON"
  exit 0
fi
venv=${XDG_CACHE_HOME:-$HOME/.cache}/tprun/torch-venv
if ! "$venv/bin/python" -c 'import torch, numpy' 2>/dev/null; then
  echo "torch.sh: installing torch into $venv" >&2
  rm -rf "$venv"
  python=/usr/bin/python3
  [[ -x $python ]] || python=python3
  if ! { "$python" -m venv "$venv" && "$venv/bin/pip" install -q --no-cache-dir torch numpy mpich >&2; }; then
    rm -rf "$venv"
    echo "torch.sh: torch cannot be installed here" >&2
    exit 1
  fi
fi
echo "$venv/bin/python"
