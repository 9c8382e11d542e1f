#!/usr/bin/env bash
# Writes deploy/images/node-tools.txt: the packages of Debian in the image of the disk driver, each with the version that apt offers
# now, and its checksum. Run it when Debian has newer ones; needs apt-get, and both architectures (image_tools.sh node-tools).
set -euo pipefail
cd "$(dirname "$0")/.."
list=deploy/images/node-tools.txt
# The programs, and the libraries that they are linked with.
packages=(
  btrfs-progs dash e2fsprogs mount util-linux xfsprogs
  libblkid1 libc6 libcom-err2 libdevmapper1.02.1 libext2fs2 libgcc-s1 libinih1 liblzo2-2 libmount1 libpcre2-8-0 libselinux1
  libsmartcols1 libudev1 liburcu8 libuuid1 libzstd1 zlib1g
)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
{
  echo "# Packages of Debian in the image of the disk driver: name, version, architecture, SHA-256. Written by scripts/image_packages.sh."
  for architecture in amd64 arm64; do
    for package in "${packages[@]}"; do
      rm -f "$scratch"/*
      (cd "$scratch" && apt-get download -qq "$package:$architecture" 2>/dev/null)
      file=$(echo "$scratch"/*.deb)
      echo "$package $(dpkg-deb --field "$file" Version) $architecture $(sha256sum "$file" | cut -d' ' -f1)"
    done
  done
} >"$scratch.list"
mv "$scratch.list" "$list"
echo "wrote $list"
