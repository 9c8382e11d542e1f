//! The acts of a history.

use azure_simulator::FaultAction;
use azure_types::ResourceId;
use serde::{Deserialize, Serialize};
use serde_json::json;
use testkit::World;
use testkit::types::{INSTANCES, INTERFACES, LOAD_BALANCERS, PUBLIC_IPS, SCALE_SETS, SECURITY_GROUPS};

use super::cluster::Entries;
use crate::features::Row;
use crate::{failure, late_failure};

/// An act.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Act {
    /// A Service is created, or changed to these features.
    Apply {
        /// The Service.
        service: usize,
        /// Its features.
        #[serde(with = "crate::features::as_features")]
        row: Row,
    },
    /// A Service is deleted.
    Delete {
        /// The Service.
        service: usize,
    },
    /// The scale set is scaled to this number of machines.
    Scale(u64),
    /// Requests of this type and method fail, as often as the number says.
    Trouble {
        /// Full resource type.
        kind: String,
        /// HTTP method.
        method: String,
        /// The failure.
        what: Trouble,
        /// The number of requests.
        times: u64,
    },
    /// Another owner changes a tag of a shared resource.
    ForeignTag {
        /// The resource.
        shared: Shared,
        /// The tag's value.
        value: u64,
    },
    /// Another owner tags the public IPs that were created for Services.
    ForeignAddressTag(u64),
    /// Another owner adds a part to a shared resource: a backend pool, or a security rule.
    ForeignPart {
        /// The resource.
        shared: Shared,
        /// The suffix of the part's name, which also selects its position.
        number: u64,
    },
    /// Another owner tags the network interface of a machine.
    ForeignInterfaceTag {
        /// The interface, by its position among the existing ones, sorted by ID.
        number: usize,
        /// The tag's value.
        value: u64,
    },
    /// Another owner adds a machine to a pool of its own on the public load balancer.
    ForeignMember {
        /// The member, by its position among the members of pools, sorted by ID.
        number: usize,
        /// The suffix of the pool's name.
        pool: u64,
    },
    /// Another owner adds a frontend to a load balancer, with a rule.
    ForeignFrontend {
        /// The load balancer.
        shared: Shared,
        /// The suffix of its name, and its port.
        number: u64,
    },
    /// Another owner removes a rule of ours while the controllers are restarted; they detect it.
    Spoil {
        /// The resource.
        shared: Shared,
    },
    /// The controllers are killed and restarted.
    Kill,
    /// The leader is cut off from Kubernetes, during a write if there is one; another replica takes over.
    CutOff,
    /// A Service names load balancers in its annotation.
    Ask {
        /// The Service.
        service: usize,
        /// The value of the annotation; `any` removes it.
        names: String,
    },
    /// A Service gets or loses the label that a load balancer selects.
    Label {
        /// The Service.
        service: usize,
        /// Whether it has the label from now on.
        on: bool,
    },
    /// The namespace of all Services gets or loses the label that a load balancer selects.
    LabelNamespace(bool),
    /// A node is labelled.
    Node {
        /// The node, by its position among the existing ones, sorted by name.
        number: usize,
        /// The label.
        label: NodeLabel,
    },
    /// A standalone machine is created or deleted.
    Machine {
        /// The machine.
        number: u64,
        /// Whether it is created.
        comes: bool,
    },
    /// The pods of a Service run on this number of nodes from now on.
    Pods {
        /// The Service.
        service: usize,
        /// The number of nodes.
        nodes: usize,
    },
    /// All writes for one Service alone fail, until all other trouble is over and longer.
    Afflict {
        /// The Service.
        service: usize,
        /// The failure of its requests.
        what: Trouble,
    },
    /// A Service asks for something that Azure refuses to all Services in the same write, until all other trouble is
    /// over and longer.
    Mistake {
        /// The Service.
        service: usize,
        /// Its mistake.
        what: Mistake,
    },
    /// The list of load balancers is changed, and the controllers are restarted with it.
    Configure(Entries),
    /// Seconds pass.
    Wait(u64),
}

/// A mistake that only Azure detects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mistake {
    /// A service tag that does not exist.
    UnknownTag,
    /// A private address that a machine has.
    AddressTaken,
}

pub(super) const MISTAKES: [Mistake; 2] = [Mistake::UnknownTag, Mistake::AddressTaken];

impl Mistake {
    /// The annotation with the mistake.
    pub(super) fn annotation(self) -> &'static str {
        match self {
            Self::UnknownTag => "service.beta.kubernetes.io/azure-allowed-service-tags",
            Self::AddressTaken => "service.beta.kubernetes.io/azure-load-balancer-ipv4",
        }
    }

    /// The value of the annotation.
    pub(super) fn value(self, world: &World) -> Option<String> {
        if self == Self::UnknownTag {
            return Some("NobodyKnowsThis".to_owned());
        }
        let node = world.serving_nodes().pop_first()?;
        let addresses = world.node(&node)["status"]["addresses"].as_array().cloned()?;
        let mut inside = addresses.iter().filter(|one| one["type"] == "InternalIP");
        inside.find_map(|one| one["address"].as_str().filter(|text| !text.contains(':')).map(str::to_owned))
    }
}

/// A label that a node gets or loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeLabel {
    /// It is excluded from load balancers.
    Excluded,
    /// It is no longer excluded.
    Included,
    /// A load balancer selects it.
    Selected,
    /// No load balancer selects it any more.
    Unselected,
}

pub(super) const NODE_LABELS: [NodeLabel; 4] =
    [NodeLabel::Excluded, NodeLabel::Included, NodeLabel::Selected, NodeLabel::Unselected];

impl NodeLabel {
    /// Key and value; `None` removes it.
    pub(super) fn label(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Excluded => (EXCLUDE, Some("")),
            Self::Included => (EXCLUDE, None),
            Self::Selected => ("pool", Some("gpu")),
            Self::Unselected => ("pool", None),
        }
    }
}

/// Excludes a node from load balancers.
pub(super) const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// A resource that many Services share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Shared {
    /// The public load balancer.
    LoadBalancer,
    /// The internal one.
    InternalLoadBalancer,
    /// The security group.
    SecurityGroup,
    /// The second external load balancer of several.
    Second,
    /// The second internal one.
    SecondInternal,
}

/// All of them; the last two are for several load balancers.
pub(super) const SHARED: [Shared; 5] = [
    Shared::LoadBalancer,
    Shared::InternalLoadBalancer,
    Shared::SecurityGroup,
    Shared::Second,
    Shared::SecondInternal,
];

impl Shared {
    pub(super) fn id(self, world: &World) -> ResourceId {
        match self {
            Self::LoadBalancer => world.load_balancer(),
            Self::InternalLoadBalancer => world.internal_load_balancer(),
            Self::SecurityGroup => world.security_group(),
            Self::Second => world.network("loadBalancers", "second"),
            Self::SecondInternal => world.network("loadBalancers", "second-internal"),
        }
    }

    /// Whether it exists only as long as it is needed.
    pub(super) fn comes_and_goes(self) -> bool {
        matches!(self, Self::Second | Self::SecondInternal)
    }

    pub(super) fn is_internal(self) -> bool {
        matches!(self, Self::InternalLoadBalancer | Self::SecondInternal)
    }

    /// The path of its rules.
    pub(super) fn rules(self) -> &'static str {
        match self {
            Self::SecurityGroup => "securityRules",
            _ => "loadBalancingRules",
        }
    }
}

/// The failure of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trouble {
    /// 429.
    Throttled,
    /// 400, of a kind that may be temporary.
    Refused,
    /// 403.
    Denied,
    /// 409: another operation is in progress.
    InProgress,
    /// 412: there was another write between read and write.
    Overtaken,
    /// 500.
    Broken,
    /// Carried out, but the answer is lost.
    AnswerLost,
    /// Never arrives.
    RequestLost,
    /// Accepted, and fails later.
    FailsLater,
    /// Accepted, and takes a minute.
    Slow,
}

pub(super) const TROUBLES: [Trouble; 10] = [
    Trouble::Throttled,
    Trouble::Refused,
    Trouble::Denied,
    Trouble::InProgress,
    Trouble::Overtaken,
    Trouble::Broken,
    Trouble::AnswerLost,
    Trouble::RequestLost,
    Trouble::FailsLater,
    Trouble::Slow,
];

/// The type of private link services.
pub(super) const PRIVATE_LINKS: &str = "Microsoft.Network/privateLinkServices";

pub(super) const KINDS: [&str; 7] =
    [LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS, SCALE_SETS, INSTANCES, INTERFACES, PRIVATE_LINKS];

/// The possible failures of all requests for one Service. None of its operations fails late: Azure writes no load
/// balancer that uses a public IP in a failed state, whatever the Service.
pub(super) const AFFLICTIONS: [Trouble; 6] = [
    Trouble::Refused,
    Trouble::Denied,
    Trouble::InProgress,
    Trouble::Broken,
    Trouble::AnswerLost,
    Trouble::Slow,
];

/// The name of the faults that cause another write between a read and a write.
pub(super) const OVERTAKEN: &str = "overtaken";

impl Trouble {
    pub(super) fn action(self) -> FaultAction {
        match self {
            Self::Throttled => FaultAction::Throttle { retry_after: Some(7) },
            Self::Refused => failure(400, "NotWelcomeToday"),
            Self::Denied => failure(403, "AuthorizationFailed"),
            Self::InProgress => failure(409, "AnotherOperationInProgress"),
            Self::Overtaken => {
                FaultAction::Interfere { id: None, patch: json!({"tags": {OVERTAKEN: "yes"}}) }
            }
            Self::Broken => failure(500, "InternalServerError"),
            Self::AnswerLost => FaultAction::DropAnswer,
            Self::RequestLost => FaultAction::DropRequest,
            Self::FailsLater => late_failure("InternalServerError"),
            Self::Slow => FaultAction::SlowOperation { ms: 60_000 },
        }
    }
}
