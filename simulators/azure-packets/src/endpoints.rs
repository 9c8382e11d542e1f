//! The targets of private endpoints.

use std::net::IpAddr;

use azure_types::ResourceId;

use super::network::Network;
use super::private_link::{Endpoint, LinkService};

impl Network {
    /// The private link service that an endpoint leads to, if it leads to one.
    pub(super) fn service_of(&self, endpoint: &Endpoint) -> Option<&LinkService> {
        let target = endpoint.target.as_deref()?;
        let by_id = ResourceId::parse(target).ok();
        self.link_services
            .iter()
            .find(|service| by_id.as_ref() == Some(&service.id) || service.alias.eq_ignore_ascii_case(target))
    }

    /// The addresses of an endpoint, in the order of its configurations.
    pub(crate) fn addresses_of_endpoint<'a>(
        &'a self,
        endpoint: &'a ResourceId,
    ) -> impl Iterator<Item = IpAddr> + 'a {
        self.interfaces
            .iter()
            .filter(move |interface| interface.endpoint.as_ref() == Some(endpoint))
            .filter_map(|interface| interface.address)
    }
}
