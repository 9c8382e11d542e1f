#!/usr/bin/env bash
# Builds what `cargo xtask seam --kubernetes real` plays with, from sources alone: the established provider's manager with its
# components, Azure Service Operator with its definitions, and clusterctl.
#
#   scripts/counterparts.sh FOLDER CHECKOUT
#
# CHECKOUT is a checkout of cluster-api-provider-azure, at the release that is to be taken over. Its go.mod names the operator's version.
# What is not there yet is built, into FOLDER. Needs Go and a Go module proxy.
#
# The operator is built with the kinds of the four groups of which the provider has objects. Releases have what controller-gen and
# kustomize make of the sources; here the same is made again for these groups: definitions with schemas and conversion, the role, and
# the registrations of webhooks.
set -euo pipefail
folder=$(mkdir -p "${1:?usage: counterparts.sh FOLDER CHECKOUT}" && cd "$1" && pwd)
checkout=$(cd "${2:?usage: counterparts.sh FOLDER CHECKOUT}" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
release=${RELEASE:-v1.26.0}
controller_gen=v0.20.0
kustomize=v5.7.1
operator=$(awk '$1 == "github.com/Azure/azure-service-operator/v2" {print $2}' "$checkout/go.mod")
groups='./api/network/...;./api/resources/...;./api/containerservice/...;./api/kubernetesconfiguration/...'
say() { printf '%s %s\n' "$(date +%T)" "$*" >&2; }
build() { # build NAME IN PACKAGE
  [ -x "$folder/$1" ] && return
  say "building $1"
  (cd "$2" && go build -o "$folder/$1" "$3")
}
tool() { # tool NAME PACKAGE@VERSION
  [ -x "$folder/$1" ] && return
  say "building $1"
  GOBIN=$folder go install "$2"
}

build provider "$checkout" .
ln -sf "$("$here/clusterctl.sh")" "$folder/clusterctl"
tool kustomize "sigs.k8s.io/kustomize/kustomize/v5@$kustomize"
tool controller-gen "sigs.k8s.io/controller-tools/cmd/controller-gen@$controller_gen"

if [ ! -d "$folder/operator-sources" ]; then
  say "operator $operator"
  from=$(cd "$checkout" && go mod download -json "github.com/Azure/azure-service-operator/v2@$operator" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
  cp -r "$from" "$folder/operator-sources" && chmod -R u+w "$folder/operator-sources"
fi
sources=$folder/operator-sources
# All of its 546 packages of kinds take half an hour; those of these groups are as they are.
table=internal/controllers/controller_resources_gen.go
if [ ! -x "$folder/operator" ]; then
  python3 "$here/operator_kinds.py" "$sources/$table" network resources containerservice kubernetesconfiguration >"$folder/table.go"
  mv "$folder/table.go" "$sources/$table"
fi
build operator "$sources" ./cmd/controller

if [ ! -f "$folder/infrastructure-components.yaml" ]; then
  say "definitions, role and webhooks of the operator"
  cd "$sources"
  rm -rf "$folder/crds" config/crd/generated && mkdir -p "$folder/crds" config/crd/generated
  "$folder/controller-gen" crd:crdVersions=v1,allowDangerousTypes=true paths="$groups" output:crd:artifacts:config="$folder/crds"
  "$folder/controller-gen" rbac:roleName=manager-role webhook paths="$groups" \
    output:rbac:artifacts:config=config/rbac output:webhook:artifacts:config=config/webhook
  # What the operator's own build adds to each definition. The operator puts its namespace in.
  for file in "$folder"/crds/*.yaml; do
    kind=$(basename "$file" .yaml)
    mkdir -p "$folder/patched/$kind" && cp "$file" "$folder/patched/$kind/definition.yaml"
    cat >"$folder/patched/$kind/kustomization.yaml" <<K
resources: [definition.yaml]
labels: [{pairs: {app.kubernetes.io/name: azure-service-operator, app.kubernetes.io/version: $operator}}]
patches:
  - target: {kind: CustomResourceDefinition}
    patch: |-
      - {op: add, path: /metadata/annotations/cert-manager.io~1inject-ca-from, value: azureserviceoperator-system/azureserviceoperator-serving-cert}
      - op: add
        path: /spec/conversion
        value:
          strategy: Webhook
          webhook:
            conversionReviewVersions: [v1]
            clientConfig: {service: {namespace: azureserviceoperator-system, name: azureserviceoperator-webhook-service, path: /convert, port: 443}}
K
    "$folder/kustomize" build "$folder/patched/$kind" >"$file"
  done
  rm -rf "$folder/patched"
  echo 'resources: []' >config/crd/generated/kustomization.yaml
  sed -i "s/\${VERSION}/$operator/" config/crd/labels.yaml config/manager/*.yaml config/webhook/service.yaml
  sed -i "s#image: .*#image: mcr.microsoft.com/k8s/azureserviceoperator:$operator#" config/manager/manager_image_patch.yaml
  "$folder/kustomize" build config/default >"$folder/operator.yaml"

  say "components of the provider"
  rm -rf "$folder/config" && cp -r "$checkout/config" "$folder/config"
  cp "$folder/operator.yaml" "$folder/config/aso/operator.yaml"
  sed -i "s#https://.*/azureserviceoperator_.*yaml#operator.yaml#" "$folder/config/aso/kustomization.yaml"
  sed -i "s#image: .*#image: registry.k8s.io/cluster-api-azure/cluster-api-azure-controller:$release#" \
    "$folder/config/capz/manager_image_patch.yaml"
  sed -i 's#imagePullPolicy: .*#imagePullPolicy: IfNotPresent#' "$folder/config/capz/manager_pull_policy.yaml"
  "$folder/kustomize" build "$folder/config/default" >"$folder/infrastructure-components.yaml"
  cp "$checkout/metadata.yaml" "$folder/metadata.yaml"
  rm -rf "$folder/config"
fi
say "ready: $folder"
