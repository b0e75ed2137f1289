#!/usr/bin/env bash
# Installs what is missing of the packages this repository builds with: packages.sh [build|test]
# Debian 12 or later; as root, or through sudo. Says what it installs; silent when nothing is missing.
set -euo pipefail

build=(g++ cmake ninja-build ccache libcli11-dev libasio-dev libspdlog-dev libfmt-dev nlohmann-json3-dev
       libtomlplusplus-dev libgloo-dev libdlpack-dev libmbedtls-dev catch2)
test=("${build[@]}" python3 python3-pytest python3-venv python3-pip procps psmisc util-linux iproute2 bash zsh fish tcsh
      man-db clang-format clang-tidy dpkg-dev file openmpi-bin libopenmpi-dev
      etcd-server)

case ${1:-build} in
  build) wanted=("${build[@]}") ;;
  test) wanted=("${test[@]}") ;;
  *) echo "usage: packages.sh [build|test]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "packages.sh: this is not a Debian system; install the like of: ${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "packages.sh: not root and no sudo; as root run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "packages.sh: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
