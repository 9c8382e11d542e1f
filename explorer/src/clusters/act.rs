//! The acts that may happen to the clusters of a neighbourhood.

use azure_simulator::{Fault, FaultAction};
use rand::Rng as _;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};

use crate::{failure, late_failure};

/// One event. An act that does not apply at the moment does nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Act {
    /// A user creates a cluster.
    Create {
        /// The cluster.
        cluster: usize,
    },
    /// A user deletes a cluster.
    Delete {
        /// The cluster.
        cluster: usize,
    },
    /// A user changes the tags of a cluster.
    Tag {
        /// The cluster.
        cluster: usize,
        /// The value of the tag; 0 removes it.
        value: u64,
    },
    /// A cluster that Azure manages gets another version of Kubernetes.
    Upgrade {
        /// The cluster.
        cluster: usize,
    },
    /// A pool of a cluster gets one more machine.
    Scale {
        /// The cluster.
        cluster: usize,
    },
    /// A cluster gets one more machine, or node pool.
    Grow {
        /// The cluster.
        cluster: usize,
    },
    /// A cluster loses its newest machine, or node pool.
    Shrink {
        /// The cluster.
        cluster: usize,
    },
    /// A cluster moves to the other management cluster, without its status.
    Move {
        /// The cluster.
        cluster: usize,
    },
    /// A manager is killed after a number of calls to Azure, and started again.
    Cut {
        /// The management cluster.
        management: usize,
        /// The number of calls.
        calls: usize,
    },
    /// A manager is killed at once, and started again.
    Kill {
        /// The management cluster.
        management: usize,
    },
    /// A third party changes something that a cluster created.
    Edit {
        /// The cluster.
        cluster: usize,
        /// Determines what is changed, and how.
        choice: u64,
    },
    /// Azure fails to answer correctly.
    Trouble {
        /// The failure.
        kind: Trouble,
        /// The number of times.
        times: u64,
    },
    /// Time passes.
    Wait {
        /// The duration.
        seconds: u64,
    },
}

/// A failure of Azure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trouble {
    /// 429 with `Retry-After`.
    Throttled,
    /// 500.
    Broken,
    /// 409, as if another operation were under way.
    Busy,
    /// 412.
    Stale,
    /// 403, as for a role that was taken away.
    Forbidden,
    /// The operation is carried out, and the answer is lost.
    Lost,
    /// The operation fails.
    Failed,
    /// The operation takes 20 s.
    Slow,
}

pub(super) const TROUBLES: [Trouble; 8] = [
    Trouble::Throttled,
    Trouble::Broken,
    Trouble::Busy,
    Trouble::Stale,
    Trouble::Forbidden,
    Trouble::Lost,
    Trouble::Failed,
    Trouble::Slow,
];

impl Trouble {
    /// The corresponding fault.
    pub(super) fn fault(self, times: u64) -> Fault {
        let fault = match self {
            Self::Throttled => Fault::new(FaultAction::Throttle { retry_after: Some(5) }),
            Self::Broken => Fault::new(failure(500, "InternalServerError")),
            Self::Busy => Fault::new(failure(409, "AnotherOperationInProgress")).on_method("PUT"),
            Self::Stale => Fault::new(failure(412, "PreconditionFailed")).on_method("PUT"),
            Self::Forbidden => Fault::new(failure(403, "AuthorizationFailed")),
            Self::Lost => Fault::new(FaultAction::DropAnswer),
            Self::Failed => Fault::new(late_failure("InternalOperationError")).on_method("PUT"),
            Self::Slow => Fault::new(FaultAction::SlowOperation { ms: 20_000 }),
        };
        fault.times(times)
    }
}

/// Random acts for this number of clusters.
pub(super) fn draw(random: &mut SmallRng, clusters: usize) -> Vec<Act> {
    let mut acts: Vec<Act> = Vec::new();
    for cluster in 0..clusters {
        acts.push(Act::Create { cluster });
        if random.random_bool(0.6) {
            acts.push(Act::Wait { seconds: [1, 5, 30, 120][random.random_range(0..4)] });
        }
    }
    for _ in 0..random.random_range(2..=8) {
        let cluster = random.random_range(0..clusters);
        let management = random.random_range(0..2);
        acts.push(match random.random_range(0..100) {
            0..8 => Act::Delete { cluster },
            8..13 => Act::Create { cluster },
            13..22 => Act::Tag { cluster, value: random.random_range(0..4) },
            22..31 => Act::Grow { cluster },
            31..38 => Act::Shrink { cluster },
            38..46 => Act::Move { cluster },
            46..56 => Act::Cut { management, calls: random.random_range(0..60) },
            56..60 => Act::Kill { management },
            60..70 => Act::Edit { cluster, choice: random.random_range(0..1000) },
            70..82 => Act::Trouble {
                kind: TROUBLES[random.random_range(0..TROUBLES.len())],
                times: random.random_range(1..=3),
            },
            82..86 => Act::Upgrade { cluster },
            86..90 => Act::Scale { cluster },
            _ => Act::Wait { seconds: [1, 10, 60, 300][random.random_range(0..4)] },
        });
        // Cuts and troubles only matter before the acts that they disturb.
        if random.random_bool(0.2) {
            let place = random.random_range(0..acts.len());
            let last = acts.len() - 1;
            acts.swap(place, last);
        }
    }
    acts
}
