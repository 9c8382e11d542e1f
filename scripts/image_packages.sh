#!/usr/bin/env bash
# Writes deploy/images/node-tools.txt and share-tools.txt: the packages of Debian in the images of the drivers for disks and for file
# shares, each with the version that apt offers now, and its checksum. Run it when Debian has newer ones; needs apt-get, and both
# architectures (image_tools.sh node-tools).
set -euo pipefail
cd "$(dirname "$0")/.."
# The programs of file systems, and the libraries that they are linked with.
common=(
  dash e2fsprogs mount util-linux xfsprogs
  libblkid1 libc6 libcom-err2 libdevmapper1.02.1 libext2fs2 libgcc-s1 libinih1 libmount1 libpcre2-8-0 libselinux1
  libsmartcols1 libudev1 liburcu8 libuuid1
)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# write LIST WORDS PACKAGE...
write() {
  local list=deploy/images/$1 about=$2 packages
  mapfile -t packages < <(printf '%s\n' "${@:3}" | LC_ALL=C sort)
  {
    echo "# Packages of Debian in the image of the $about: name, version, architecture, SHA-256. Written by scripts/image_packages.sh."
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
}

write node-tools.txt "disk driver" "${common[@]}" btrfs-progs liblzo2-2 libzstd1 zlib1g
write share-tools.txt "driver for file shares" "${common[@]}" cifs-utils nfs-common \
  libcap-ng0 libgssapi-krb5-2 libk5crypto3 libkeyutils1 libkrb5-3 libkrb5support0 libtirpc3
