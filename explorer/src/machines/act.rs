//! What may happen to machines, and to those who ask for them.

use azure_simulator::{Fault, FaultAction};
use serde::{Deserialize, Serialize};
use testkit::types::{INSTANCES, MACHINES, SCALE_SETS};

/// The states in which machines are found. Stopped ones are off and still on their hosts.
pub(super) const POWER: [&str; 4] = ["running", "running", "stopped", "deallocated"];

/// One event. Machines are counted in the order of their names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Act {
    /// A machine is switched.
    Power {
        /// Which one.
        machine: usize,
        /// The state that it is in from now on.
        state: String,
    },
    /// A machine is deleted.
    Remove {
        /// Which one.
        machine: usize,
    },
    /// Everything outside of uniform sets that was deleted is made again, under the same names.
    Return,
    /// A scale set gets more machines or fewer.
    Scale {
        /// Which one.
        set: usize,
        /// How many machines it has then.
        machines: u64,
    },
    /// A uniform scale set is deleted with all its machines.
    RemoveSet {
        /// Which one.
        set: usize,
    },
    /// A kubelet is not heard any more.
    Silence {
        /// Which one's.
        machine: usize,
    },
    /// It is heard again.
    Speak {
        /// Which one's.
        machine: usize,
    },
    /// Somebody deletes a Node; its kubelet registers it again.
    DeleteNode {
        /// Which one's.
        machine: usize,
    },
    /// Azure does not answer as it should.
    Trouble {
        /// How.
        kind: Trouble,
        /// How often.
        times: u64,
    },
    /// Azure says that something is not there.
    Lie {
        /// What.
        about: Lie,
        /// How often.
        times: u64,
    },
    /// Lists are older than what they are asked for.
    Lag {
        /// By how many seconds at most.
        seconds: u64,
    },
    /// Azure is well again.
    Calm,
    /// The controllers are killed and started again.
    Kill,
    /// The leader is cut off, and another takes over.
    CutOff,
    /// Time passes.
    Wait {
        /// How much.
        seconds: u64,
    },
}

/// How Azure fails to answer.
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
    /// What happens to reads of machines and of their sets.
    pub(super) fn faults(self, times: u64) -> [Fault; 3] {
        let fail = |status, code: &str| FaultAction::Fail {
            status,
            code: code.to_owned(),
            message: "No machine can be read.".to_owned(),
        };
        let action = match self {
            Self::Throttled => FaultAction::Throttle { retry_after: Some(17) },
            Self::Broken => fail(500, "InternalServerError"),
            Self::Unavailable => fail(503, "ServiceUnavailable"),
            Self::Forbidden => fail(403, "AuthorizationFailed"),
            Self::Lost => FaultAction::DropRequest,
            Self::Slow => FaultAction::Delay { ms: 20_000 },
        };
        [INSTANCES, MACHINES, SCALE_SETS]
            .map(|kind| Fault::new(action.clone()).on_method("GET").on_type(kind).times(times))
    }
}

/// What Azure says is not there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Lie {
    /// Each list of machines.
    Lists,
    /// Each machine that is read by its id.
    Machines,
}

pub(super) const LIES: [Lie; 2] = [Lie::Lists, Lie::Machines];

impl Lie {
    pub(super) fn faults(self, times: u64) -> [Fault; 2] {
        let name = match self {
            Self::Lists => "",
            Self::Machines => "?*",
        };
        let action = FaultAction::Fail {
            status: 404,
            code: "ResourceNotFound".to_owned(),
            message: "The Resource was not found.".to_owned(),
        };
        [INSTANCES, MACHINES].map(|kind| {
            Fault::new(action.clone()).on_method("GET").on_type(kind).on_resource(name).times(times)
        })
    }
}
