#!/usr/bin/env bash
# Prints the path of a program of a Go module, and builds it if it is missing.
# Exit code 3: it cannot be had on this machine, because Go or the module is missing.
#
#   go_program.sh NAME VERSION MODULE PACKAGE [REPLACED MODULE OF THE SAME VERSION...]
set -euo pipefail

name=$1 version=$2 module=$3 package=$4
shift 4
folder="${XDG_CACHE_HOME:-$HOME/.cache}/cerulean/$name-${version#v}"

if [ ! -x "$folder/$name" ]; then
  go=$(command -v go || echo /usr/local/go/bin/go)
  if [ ! -x "$go" ]; then
    echo "$name $version cannot be built: there is no Go on this machine" >&2
    exit 3
  fi
  # In a folder of its own first, so that an interrupted installation leaves nothing that looks whole.
  mkdir -p "$folder"
  building=$(mktemp -d "$folder/building.XXXXXX")
  trap 'rm -rf "$building"' EXIT
  build() {
    # A module of its own: "go install" refuses modules that replace others by folders of their repository.
    cd "$building"
    "$go" mod init building
    "$go" mod edit -require "$module@$version"
    for replaced in "$@"; do "$go" mod edit -replace "$replaced=$replaced@$version"; done
    "$go" build -mod=mod -trimpath -buildvcs=false -o "$name" "$package"
  }
  if ! (build "$@") >"$building/log" 2>&1; then
    tail -n 5 "$building/log" >&2
    echo "$name $version cannot be built: its Go module cannot be had, or Go is too old" >&2
    exit 3
  fi
  mv "$building/$name" "$folder/$name"
fi
echo "$folder/$name"
