#!/usr/bin/env bash
# Prints the path of helm, and installs it from its Go module if it is missing (a minute and a half).
# Exit code 3: it cannot be had on this machine, because Go or the module is missing.
set -euo pipefail

version=v3.22.0
folder="${XDG_CACHE_HOME:-$HOME/.cache}/cerulean/helm-${version#v}"

if [ ! -x "$folder/helm" ]; then
  go=$(command -v go || echo /usr/local/go/bin/go)
  if [ ! -x "$go" ]; then
    echo "helm $version cannot be built: there is no Go on this machine" >&2
    exit 3
  fi
  # In a folder of its own first, so that an interrupted installation leaves nothing that looks whole.
  mkdir -p "$folder"
  building=$(mktemp -d "$folder/building.XXXXXX")
  trap 'rm -rf "$building"' EXIT
  if ! GOBIN="$building" GOFLAGS=-trimpath "$go" install "helm.sh/helm/v3/cmd/helm@$version" >"$building/log" 2>&1; then
    tail -n 5 "$building/log" >&2
    echo "helm $version cannot be built: its Go module cannot be had, or Go is too old" >&2
    exit 3
  fi
  mv "$building/helm" "$folder/helm"
fi
echo "$folder/helm"
