#!/usr/bin/env bash
# Prints the folder of a real Kubernetes, and builds what is missing there from Go modules (seven minutes on two cores): etcd,
# kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and kubectl.
#
#   export KUBEBUILDER_ASSETS=$(scripts/kubernetes.sh)
#
# kubernetes/go.mod names the version of Kubernetes. Needs Go 1.26 and a Go module proxy, and installs nothing else.
set -euo pipefail

sources=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/kubernetes
version=$(awk '$1 == "require" && $2 == "k8s.io/kubernetes" {print $3}' "$sources/go.mod")
etcd=v3.6.8
folder="${XDG_CACHE_HOME:-$HOME/.cache}/cerulean/kube-assets-${version#v}"
go=$(command -v go || echo /usr/local/go/bin/go)
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOTOOLCHAIN=local

mkdir -p "$folder"
building=$(mktemp -d "$folder/building.XXXXXX")
trap 'rm -rf "$building"' EXIT

missing=()
for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl; do
  [ -x "$folder/$program" ] || missing+=("k8s.io/kubernetes/cmd/$program")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "building ${missing[*]##*/} $version" >&2
  minor=${version#v1.}
  about="-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1"
  about="$about -X k8s.io/component-base/version.gitMinor=${minor%%.*}"
  (cd "$sources" && "$go" build -trimpath -ldflags "-s -w $about" -o "$building/" "${missing[@]}")
fi
if [ ! -x "$folder/etcd" ]; then
  echo "building etcd $etcd" >&2
  mkdir "$building/sources"
  (
    cd "$building/sources"
    "$go" mod init etcd
    "$go" get "go.etcd.io/etcd/server/v3@$etcd"
    "$go" build -trimpath -ldflags "-s -w" -o "$building/etcd" go.etcd.io/etcd/server/v3
  ) >"$building/log" 2>&1 || { cat "$building/log" >&2; exit 1; }
fi
# Whole programs alone get their names, however often this is interrupted.
find "$building" -maxdepth 1 -type f -perm -100 -exec mv {} "$folder/" \;
echo "$folder"
