#!/usr/bin/env bash
# Prints the path of csi-sanity, the checks of the Container Storage Interface, and builds it if it is missing (a minute and a
# half). Exit codes: go_program.sh.
exec "$(dirname "${BASH_SOURCE[0]}")/go_program.sh" csi-sanity v5.6.0 github.com/kubernetes-csi/csi-test/v5 \
  github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity
