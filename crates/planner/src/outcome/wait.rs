//! What a Service waits for. Nothing is wrong with it, and no change is needed.

use k8s::ObjectKey;
use thiserror::Error;

use crate::model::words::name_some;

/// A state of Azure that is expected to come.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Wait {
    /// A public IP with a running operation is not referred to.
    #[error("Azure is still at work on public IP {}", name_some(names))]
    PublicIps {
        /// Their names.
        names: Vec<String>,
    },
    /// An address that Azure chooses exists once it is in use.
    #[error("public IP {name} has no address yet")]
    PublicIpWithoutAddress {
        /// The public IP.
        name: String,
    },
    /// A written load balancer counts only after it is read again.
    #[error("{service} has no load balancer yet")]
    NoLoadBalancer {
        /// The Service.
        service: ObjectKey,
    },
    /// The same for a frontend.
    #[error("{service} has no frontend yet")]
    NoFrontend {
        /// The Service.
        service: ObjectKey,
    },
    /// Azure chooses the addresses of internal frontends.
    #[error("{service} has a frontend without an address yet")]
    FrontendWithoutAddress {
        /// The Service.
        service: ObjectKey,
    },
    /// The labels of a namespace may affect the placement of its Services.
    #[error(
        "the labels of namespace {namespace} are not known yet, and the placement of {service} may depend on them"
    )]
    NamespaceUnknown {
        /// The namespace.
        namespace: String,
        /// The Service.
        service: ObjectKey,
    },
    /// The set of a machine affects the placement of Services of SKU Basic.
    #[error(
        "Azure does not show yet which set of machines node {node} belongs to, and the placement of {service} may depend on it"
    )]
    MachineSetUnknown {
        /// The node.
        node: String,
        /// The Service.
        service: ObjectKey,
    },
    /// Public IPs that cannot be brought to the desired state are not created again without end.
    #[error("{service}: a public IP was created again several times")]
    PublicIpRecreated {
        /// The Service.
        service: ObjectKey,
    },
}
