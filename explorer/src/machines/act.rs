//! The acts on machines, and on the programs that read them.

use azure_simulator::{Fault, FaultAction};
use serde::{Deserialize, Serialize};
use testkit::types::{INSTANCES, MACHINES, SCALE_SETS};

use crate::failure;

/// The power states of machines. Stopped ones are off and still on their hosts.
pub(super) const POWER: [&str; 4] = ["running", "running", "stopped", "deallocated"];

/// One event. Machines are numbered in the order of their names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Act {
    /// A machine changes its power state.
    Power {
        /// The machine.
        machine: usize,
        /// Its new state.
        state: String,
    },
    /// A machine is deleted.
    Remove {
        /// The machine.
        machine: usize,
    },
    /// All deleted machines outside of uniform sets are created again, under the same names.
    Return,
    /// A scale set is scaled.
    Scale {
        /// The scale set.
        set: usize,
        /// Its new number of machines.
        machines: u64,
    },
    /// A uniform scale set is deleted with all its machines.
    RemoveSet {
        /// The scale set.
        set: usize,
    },
    /// A kubelet falls silent.
    Silence {
        /// Its machine.
        machine: usize,
    },
    /// A kubelet speaks again.
    Speak {
        /// Its machine.
        machine: usize,
    },
    /// A user deletes a Node; its kubelet registers it again.
    DeleteNode {
        /// Its machine.
        machine: usize,
    },
    /// Azure fails to answer correctly.
    Trouble {
        /// The failure.
        kind: Trouble,
        /// The number of times.
        times: u64,
    },
    /// Azure answers that something does not exist.
    Lie {
        /// The subject.
        about: Lie,
        /// The number of times.
        times: u64,
    },
    /// Lists are outdated.
    Lag {
        /// By this number of seconds at most.
        seconds: u64,
    },
    /// Azure's failures end.
    Calm,
    /// The controllers are killed and restarted.
    Kill,
    /// The leader is cut off, and another takes over.
    CutOff,
    /// Time passes.
    Wait {
        /// The duration.
        seconds: u64,
    },
}

/// A failure of Azure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trouble {
    /// 429 with `Retry-After`.
    Throttled,
    /// 500.
    Broken,
    /// 503.
    Unavailable,
    /// 403, as for a role that was taken away.
    Forbidden,
    /// The connection breaks.
    Lost,
    /// The answer takes 20 s.
    Slow,
}

pub(super) const TROUBLES: [Trouble; 6] = [
    Trouble::Throttled,
    Trouble::Broken,
    Trouble::Unavailable,
    Trouble::Forbidden,
    Trouble::Lost,
    Trouble::Slow,
];

impl Trouble {
    /// The faults of reads of machines and of their sets.
    pub(super) fn faults(self, times: u64) -> [Fault; 3] {
        let action = match self {
            Self::Throttled => FaultAction::Throttle { retry_after: Some(17) },
            Self::Broken => failure(500, "InternalServerError"),
            Self::Unavailable => failure(503, "ServiceUnavailable"),
            Self::Forbidden => failure(403, "AuthorizationFailed"),
            Self::Lost => FaultAction::DropRequest,
            Self::Slow => FaultAction::Delay { ms: 20_000 },
        };
        [INSTANCES, MACHINES, SCALE_SETS]
            .map(|kind| Fault::new(action.clone()).on_method("GET").on_type(kind).times(times))
    }
}

/// What Azure denies the existence of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Lie {
    /// Every list of machines.
    Lists,
    /// Every machine that is read by its ID.
    Machines,
}

pub(super) const LIES: [Lie; 2] = [Lie::Lists, Lie::Machines];

impl Lie {
    pub(super) fn faults(self, times: u64) -> [Fault; 2] {
        let name = match self {
            Self::Lists => "",
            Self::Machines => "?*",
        };
        let action = failure(404, "ResourceNotFound");
        [INSTANCES, MACHINES].map(|kind| {
            Fault::new(action.clone()).on_method("GET").on_type(kind).on_resource(name).times(times)
        })
    }
}
