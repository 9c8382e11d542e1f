#!/usr/bin/env bash
# Runs a program as on a machine of `cerulean simulate cluster --volumes FOLDER`: in a mount namespace of its own, in which /dev is
# the machine's, and the parts of /sys that describe disks are the machine's, too.
#
#   scripts/in_machine.sh FOLDER/MACHINE PROGRAM [ARGUMENT...]
#
# IN_MACHINE_PROPAGATION=unchanged leaves shared mounts shared: a kubelet outside sees what the program mounts below them.
set -euo pipefail

machine=$(realpath -- "$1")
shift
if [ ! -d "$machine/dev/disk/azure" ]; then
  echo "$machine is no machine: name one of the folders below the one of --volumes" >&2
  exit 1
fi
# A part that this kernel does not have cannot be put there, and no program finds disks in it.
exec unshare --mount --propagation "${IN_MACHINE_PROPAGATION:-private}" sh -c '
  machine=$1
  shift
  for part in bus/scsi class/scsi_host class/nvme class/block; do
    if [ -d "/sys/$part" ]; then mount --bind "$machine/sys/$part" "/sys/$part" || exit; fi
  done
  mount --bind "$machine/dev" /dev || exit
  exec "$@"' sh "$machine" "$@"
