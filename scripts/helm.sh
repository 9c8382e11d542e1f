#!/usr/bin/env bash
# Prints the path of helm, and builds it if it is missing (a minute and a half). Exit codes: go_program.sh.
exec "$(dirname "${BASH_SOURCE[0]}")/go_program.sh" helm v3.22.0 helm.sh/helm/v3 helm.sh/helm/v3/cmd/helm
