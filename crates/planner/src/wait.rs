//! What a Service waits for: nothing is wrong with it, and nothing has to be changed.

use k8s::ObjectKey;
use thiserror::Error;

use crate::words::name_some;

/// What Azure does not show yet, and will.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Wait {
    /// Nothing refers to a public IP on which an operation runs.
    #[error("Azure is still at work on public IP {}", name_some(names))]
    PublicIps {
        /// Their names.
        names: Vec<String>,
    },
    /// An address that Azure chooses is there once it is in use.
    #[error("public IP {name} has no address yet")]
    PublicIpWithoutAddress {
        /// The public IP.
        name: String,
    },
    /// What was written is read again before it counts.
    #[error("{service} has no load balancer yet")]
    NoLoadBalancer {
        /// The Service.
        service: ObjectKey,
    },
    /// As before.
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
    /// The labels of a namespace may decide on which of several load balancers its Services are.
    #[error(
        "the labels of namespace {namespace} are not known yet, and {service} may have its place by them"
    )]
    NamespaceUnknown {
        /// The namespace.
        namespace: String,
        /// The Service.
        service: ObjectKey,
    },
    /// The set of a machine decides on which load balancer of SKU Basic its Services are.
    #[error(
        "Azure does not show yet which set of machines node {node} belongs to, and {service} may have its place by it"
    )]
    MachineSetUnknown {
        /// The node.
        node: String,
        /// The Service.
        service: ObjectKey,
    },
    /// Public IPs that do not come to what is wanted of them are not created again for ever.
    #[error("{service}: a public IP was created again several times")]
    PublicIpRecreated {
        /// The Service.
        service: ObjectKey,
    },
}
