//! What can happen in a history.

use azure_simulator::FaultAction;
use azure_types::ResourceId;
use serde_json::json;
use testkit::World;
use testkit::types::{INSTANCES, INTERFACES, LOAD_BALANCERS, PUBLIC_IPS, SCALE_SETS, SECURITY_GROUPS};

use super::cluster::Entries;
use crate::features::Row;

/// Something that happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// A Service comes, or changes to these features.
    Apply {
        /// Which.
        service: usize,
        /// Its features.
        row: Row,
    },
    /// A Service goes.
    Delete {
        /// Which.
        service: usize,
    },
    /// The scale set has so many machines from now on.
    Scale(u64),
    /// Requests of this type and method fare badly, as often as the number says.
    Trouble {
        /// Full resource type.
        kind: &'static str,
        /// HTTP method.
        method: &'static str,
        /// What becomes of them.
        what: Trouble,
        /// How many.
        times: u64,
    },
    /// Somebody else changes a tag of a shared resource.
    ForeignTag {
        /// Which.
        shared: Shared,
        /// The tag's value.
        value: u64,
    },
    /// Somebody else tags the public IPs that were made for Services.
    ForeignAddressTag(u64),
    /// Somebody else adds a part of their own to a shared resource: a backend pool, or a security rule.
    ForeignPart {
        /// Which.
        shared: Shared,
        /// What the part's name and place end with.
        number: u64,
    },
    /// Somebody else tags the network interface of a machine.
    ForeignInterfaceTag {
        /// Which of those that are there, by their ids.
        number: usize,
        /// The tag's value.
        value: u64,
    },
    /// Somebody else takes a machine into a pool of their own on the public load balancer.
    ForeignMember {
        /// Which of those that are members of pools, by their ids.
        number: usize,
        /// What the pool's name ends with.
        pool: u64,
    },
    /// Somebody else adds a frontend of their own to a load balancer, with a rule.
    ForeignFrontend {
        /// The load balancer.
        shared: Shared,
        /// What its name ends with, and its port.
        number: u64,
    },
    /// Somebody takes a rule of ours away while the controllers are restarted, who find out.
    Spoil {
        /// From which resource.
        shared: Shared,
    },
    /// The controllers are killed and started anew.
    Kill,
    /// The leader is cut off from Kubernetes, in the middle of a write if there is one; another replica takes over.
    CutOff,
    /// A Service names load balancers in its annotation.
    Ask {
        /// Which Service.
        service: usize,
        /// What the annotation says; `any` takes it away.
        names: &'static str,
    },
    /// A Service gets or loses the label that a load balancer selects.
    Label {
        /// Which.
        service: usize,
        /// Whether it has it from now on.
        on: bool,
    },
    /// The namespace of all Services gets or loses the label that a load balancer selects.
    LabelNamespace(bool),
    /// A node is labelled.
    Node {
        /// Which of those that are there, by their names.
        number: usize,
        /// How.
        label: NodeLabel,
    },
    /// A machine of its own comes or goes.
    Machine {
        /// Which.
        number: u64,
        /// Whether it comes.
        comes: bool,
    },
    /// The pods of a Service are on so many nodes from now on.
    Pods {
        /// Which Service.
        service: usize,
        /// How many nodes.
        nodes: usize,
    },
    /// Whatever is made or deleted for one Service alone fares badly, until all other trouble is over and longer.
    Afflict {
        /// Which Service.
        service: usize,
        /// What becomes of its requests.
        what: Trouble,
    },
    /// A Service asks for something that Azure refuses to all with whom it shares a write, until all other trouble is
    /// over and longer.
    Mistake {
        /// Which Service.
        service: usize,
        /// What it asks for.
        what: Mistake,
    },
    /// The list of load balancers is another one, with which the controllers are started anew.
    Configure(Entries),
    /// Seconds pass.
    Wait(u64),
}

/// What Azure alone knows to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// A service tag that does not exist.
    UnknownTag,
    /// A private address that a machine has.
    AddressTaken,
}

pub(super) const MISTAKES: [Mistake; 2] = [Mistake::UnknownTag, Mistake::AddressTaken];

impl Mistake {
    /// The annotation that says it.
    pub(super) fn annotation(self) -> &'static str {
        match self {
            Self::UnknownTag => "service.beta.kubernetes.io/azure-allowed-service-tags",
            Self::AddressTaken => "service.beta.kubernetes.io/azure-load-balancer-ipv4",
        }
    }

    /// What it says.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeLabel {
    /// It is kept out of load balancers.
    Excluded,
    /// It is kept out no longer.
    Included,
    /// A load balancer selects it.
    Selected,
    /// No load balancer selects it any more.
    Unselected,
}

pub(super) const NODE_LABELS: [NodeLabel; 4] =
    [NodeLabel::Excluded, NodeLabel::Included, NodeLabel::Selected, NodeLabel::Unselected];

impl NodeLabel {
    /// Key and value; none takes it away.
    pub(super) fn label(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Excluded => (EXCLUDE, Some("")),
            Self::Included => (EXCLUDE, None),
            Self::Selected => ("pool", Some("gpu")),
            Self::Unselected => ("pool", None),
        }
    }
}

/// Keeps a node out of load balancers.
pub(super) const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// A resource that many Services share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    /// The public load balancer.
    LoadBalancer,
    /// The internal one.
    InternalLoadBalancer,
    /// The security group.
    SecurityGroup,
    /// Of several load balancers, the second public one.
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

    /// Whether it is there only as long as somebody needs it.
    pub(super) fn comes_and_goes(self) -> bool {
        matches!(self, Self::Second | Self::SecondInternal)
    }

    pub(super) fn is_internal(self) -> bool {
        matches!(self, Self::InternalLoadBalancer | Self::SecondInternal)
    }

    /// Where its rules stand.
    pub(super) fn rules(self) -> &'static str {
        match self {
            Self::SecurityGroup => "securityRules",
            _ => "loadBalancingRules",
        }
    }
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// 429.
    Throttled,
    /// 400, of a kind that may pass.
    Refused,
    /// 403.
    Denied,
    /// 409: another operation is in progress.
    InProgress,
    /// 412: somebody else wrote between read and write.
    Overtaken,
    /// 500.
    Broken,
    /// Done, but nobody is told.
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

pub(super) const METHODS: [&str; 3] = ["PUT", "GET", "DELETE"];

/// The type of private link services.
pub(super) const PRIVATE_LINKS: &str = "Microsoft.Network/privateLinkServices";

pub(super) const KINDS: [&str; 7] =
    [LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS, SCALE_SETS, INSTANCES, INTERFACES, PRIVATE_LINKS];

/// What may become of all requests for one Service. None of its operations fails late: Azure writes no load balancer that
/// uses a public IP in a failed state, whoever asks.
pub(super) const AFFLICTIONS: [Trouble; 6] = [
    Trouble::Refused,
    Trouble::Denied,
    Trouble::InProgress,
    Trouble::Broken,
    Trouble::AnswerLost,
    Trouble::Slow,
];

/// The name of the faults that let somebody else write between a read and a write.
pub(super) const OVERTAKEN: &str = "overtaken";

impl Trouble {
    pub(super) fn action(self) -> FaultAction {
        let fail = |status, code: &str| FaultAction::Fail {
            status,
            code: code.to_owned(),
            message: "An error of this test.".to_owned(),
        };
        match self {
            Self::Throttled => FaultAction::Throttle { retry_after: Some(7) },
            Self::Refused => fail(400, "NotWelcomeToday"),
            Self::Denied => fail(403, "AuthorizationFailed"),
            Self::InProgress => fail(409, "AnotherOperationInProgress"),
            Self::Overtaken => {
                FaultAction::Interfere { id: None, patch: json!({"tags": {OVERTAKEN: "yes"}}) }
            }
            Self::Broken => fail(500, "InternalServerError"),
            Self::AnswerLost => FaultAction::DropAnswer,
            Self::RequestLost => FaultAction::DropRequest,
            Self::FailsLater => FaultAction::FailOperation {
                code: "InternalServerError".to_owned(),
                message: "An error of this test.".to_owned(),
            },
            Self::Slow => FaultAction::SlowOperation { ms: 60_000 },
        }
    }
}
