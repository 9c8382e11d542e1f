//! The side-cars of kubernetes-csi, with the arguments of our chart but limits of their work and metrics.

use std::path::{Path, PathBuf};

use super::accounts::{CONTROLLER, SNAPSHOTS};
use crate::e2e::rights::Account;
use crate::print;

/// A side-car.
#[derive(Debug, Clone, Copy)]
pub struct SideCar {
    /// The name of its program.
    pub name: &'static str,
    /// Its service account.
    pub account: Account,
    /// Its arguments beside the driver's socket and the kubeconfig.
    pub arguments: &'static [&'static str],
}

const ELECTION: &str = "--leader-election";
const NAMESPACE: &str = "--leader-election-namespace=kube-system";

/// Azure makes no snapshot of several disks at once. Version 8.7 looks for them otherwise, which our roles do not allow.
const NO_GROUPS: &str = "--feature-gates=CSIVolumeGroupSnapshot=false";

/// All of them.
pub const ALL: [SideCar; 5] = [
    SideCar {
        name: "csi-provisioner",
        account: CONTROLLER,
        arguments: &[
            "--v=2",
            "--timeout=30s",
            ELECTION,
            NAMESPACE,
            "--extra-create-metadata=true",
            "--strict-topology=true",
            "--feature-gates=Topology=true",
        ],
    },
    SideCar {
        name: "csi-attacher",
        account: CONTROLLER,
        arguments: &["--v=2", "--timeout=600s", ELECTION, NAMESPACE],
    },
    SideCar {
        name: "csi-resizer",
        account: CONTROLLER,
        arguments: &["--v=2", "--timeout=240s", ELECTION, NAMESPACE, "--handle-volume-inuse-error=false"],
    },
    SideCar {
        name: "csi-snapshotter",
        account: CONTROLLER,
        arguments: &[
            "--v=2",
            "--timeout=1200s",
            ELECTION,
            NAMESPACE,
            "--extra-create-metadata=true",
            NO_GROUPS,
        ],
    },
    SideCar {
        name: "snapshot-controller",
        account: SNAPSHOTS,
        arguments: &["--v=2", "--leader-election=true", NAMESPACE, NO_GROUPS],
    },
];

/// The folder of their programs.
#[derive(Debug)]
pub struct SideCars {
    folder: PathBuf,
}

impl SideCars {
    /// The programs in a folder; `None` with a message where one is missing.
    pub fn find(folder: &Path) -> Option<Self> {
        let missing: Vec<&str> =
            ALL.iter().map(|one| one.name).filter(|name| !folder.join(name).exists()).collect();
        if !missing.is_empty() {
            print::line(format_args!("skipped: volumes of a real Kubernetes need {}", missing.join(", ")));
            return None;
        }
        Some(Self { folder: folder.to_owned() })
    }

    /// The program of a side-car.
    pub fn program(&self, one: SideCar) -> PathBuf {
        self.folder.join(one.name)
    }

    /// Says which of them are real.
    pub fn announce(&self) {
        let names: Vec<&str> = ALL.iter().map(|one| one.name).collect();
        print::line(format_args!("real: {}", names.join(", ")));
        print::line("stand-in: node-driver-registrar, which is not published as a Go module");
    }
}
