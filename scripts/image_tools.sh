#!/usr/bin/env bash
# Installs what `cargo xtask images` needs, from Debian and from rustup. As root.
#
#   image_tools.sh amd64|arm64|windows   compilers and the compiler's target for one platform
#   image_tools.sh node-tools            apt's lists for both architectures: the images of the drivers for volumes have packages of Debian
#   image_tools.sh check                 what `cargo xtask images check` runs
#   image_tools.sh monitoring            what `cargo xtask monitoring check` and the installation story run
set -euo pipefail
cd "$(dirname "$0")/.."
export DEBIAN_FRONTEND=noninteractive
packages() {
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
for what in "${@:?amd64, arm64, windows, node-tools, check or monitoring}"; do
  case $what in
  amd64)
    packages musl-tools
    rustup target add x86_64-unknown-linux-musl
    ;;
  arm64)
    # The C library's headers are those of musl for this architecture, which Debian has as a package of that architecture.
    dpkg --add-architecture arm64
    packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross musl-dev:arm64
    rustup target add aarch64-unknown-linux-musl
    ;;
  windows)
    packages gcc-mingw-w64-x86-64
    rustup target add x86_64-pc-windows-gnu
    ;;
  check)
    packages skopeo umoci runc qemu-user-static
    ;;
  monitoring)
    packages prometheus
    ;;
  node-tools)
    dpkg --add-architecture amd64
    dpkg --add-architecture arm64
    apt-get update -qq
    ;;
  *)
    echo "image_tools.sh: unknown: $what: give amd64, arm64, windows, node-tools, check or monitoring" >&2
    exit 2
    ;;
  esac
done
