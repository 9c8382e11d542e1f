//! Private endpoints and private link services: an address in one network that leads to a frontend in
//! another.

use std::net::IpAddr;

use azure_types::ResourceId;

/// A private endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub id: ResourceId,
    /// Its target: a resource id, or the alias of a private link service.
    pub target: Option<String>,
    /// `Approved`, `Pending`, `Rejected` or `Disconnected`.
    pub status: String,
    pub application_groups: Vec<ResourceId>,
}

/// A private link service.
#[derive(Debug)]
pub(crate) struct LinkService {
    pub id: ResourceId,
    pub alias: String,
    pub frontends: Vec<ResourceId>,
    /// The addresses that clients of endpoints appear under.
    pub addresses: Vec<IpAddr>,
    pub proxy_protocol: bool,
}

impl Endpoint {
    pub(super) fn is_approved(&self) -> bool {
        self.status.eq_ignore_ascii_case("Approved")
    }
}
