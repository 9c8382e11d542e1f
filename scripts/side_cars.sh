#!/usr/bin/env bash
# Prints the folder of the side-cars of drivers for disks (kubernetes-csi), and builds those that are missing from their Go modules,
# each with the replacements of its own go.mod. What cannot be built is named on the error output, and is not in the folder:
# `cargo xtask e2e volumes` then skips the story that needs it.
#
#   cargo xtask e2e volumes --side-cars "$(scripts/side_cars.sh)"
#
# With --built nothing is built, and the exit code is 3 if one is missing.
# Exit code 3: none can be had on this machine, because Go is missing. node-driver-registrar is not published as a Go module.
set -euo pipefail

folder="${XDG_CACHE_HOME:-$HOME/.cache}/cerulean/side-cars-1"
go=$(command -v go || echo /usr/local/go/bin/go)
if [ ! -x "$go" ]; then
  echo "side-cars cannot be built: there is no Go on this machine" >&2
  exit 3
fi
if [ "${1:-}" = --built ]; then
  for program in csi-attacher csi-provisioner csi-resizer csi-snapshotter snapshot-controller; do
    if [ ! -x "$folder/$program" ]; then
      echo "$program was not built: scripts/side_cars.sh builds it" >&2
      exit 3
    fi
  done
  echo "$folder"
  exit 0
fi
export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS="-mod=mod -buildvcs=false"
mkdir -p "$folder"
building=$(mktemp -d "$folder/building.XXXXXX")
trap 'chmod -R u+w "$building"; rm -rf "$building"' EXIT

# build MODULE VERSION PROGRAM...
build() {
  local module=github.com/kubernetes-csi/$1 version=$2 sources=$building/$1 missing=()
  shift 2
  for program in "$@"; do [ -x "$folder/$program" ] || missing+=("$program"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "building ${missing[*]} $version" >&2
  # A copy of the module, because replacements count in the main module alone.
  mkdir -p "$sources"
  local from
  from=$(cd "$building" && "$go" mod download -json "$module@$version" 2>/dev/null | awk -F'"' '$2 == "Dir" {print $4}')
  if [ -z "$from" ]; then
    echo "${missing[*]} cannot be built: the module $module cannot be had" >&2
    return 0
  fi
  cp -r "$from/." "$sources"
  chmod -R u+w "$sources"
  for program in "${missing[@]}"; do
    (
      cd "$sources"
      # The module in a folder of the same repository is published beside it.
      client=github.com/kubernetes-csi/external-snapshotter/client/v8
      "$go" mod edit -replace "$client=$client@v8.6.0"
      "$go" build -trimpath -ldflags "-s -w -X main.version=$version" -o "$building/$program" "./cmd/$program"
    ) >"$building/log" 2>&1 || { tail -n 5 "$building/log" >&2; echo "$program cannot be built" >&2; continue; }
    mv "$building/$program" "$folder/$program"
  done
}

build external-attacher/v4 v4.13.0 csi-attacher
build external-provisioner/v6 v6.4.0 csi-provisioner
build external-resizer/v2 v2.3.0 csi-resizer
build external-snapshotter/v8 v8.7.0 csi-snapshotter snapshot-controller
echo "$folder"
