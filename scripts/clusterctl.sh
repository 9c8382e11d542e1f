#!/usr/bin/env bash
# Prints the path of clusterctl, and builds it if it is missing (two minutes). Exit codes: go_program.sh.
exec "$(dirname "${BASH_SOURCE[0]}")/go_program.sh" clusterctl v1.14.2 sigs.k8s.io/cluster-api sigs.k8s.io/cluster-api/cmd/clusterctl \
  sigs.k8s.io/cluster-api/api
