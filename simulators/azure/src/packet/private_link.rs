//! Private endpoints and private link services: an address in one network that leads to a frontend in
//! another.

use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::Value;

use super::json::{address_at, flag_at, id_at, id_of, ids_at, items, text_at};
use super::network::Network;
use crate::Documents;

/// A private endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub id: ResourceId,
    /// What it leads to: a resource id, or the alias of a private link service.
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

impl Network {
    pub(super) fn read_endpoints(&mut self, documents: &dyn Documents) {
        for document in documents.of_type("Microsoft.Network/privateEndpoints") {
            let Some(id) = id_of(&document) else { continue };
            let connection = ["privateLinkServiceConnections", "manualPrivateLinkServiceConnections"]
                .into_iter()
                .find_map(|member| items(&document, &format!("/properties/{member}")).next());
            let text = |pointer: &str| connection.and_then(|found| text_at(found, pointer));
            let status = text("/properties/privateLinkServiceConnectionState/status");
            let endpoint = Endpoint {
                id: id.clone(),
                target: text("/properties/privateLinkServiceId").map(str::to_owned),
                status: status.unwrap_or("Approved").to_owned(),
                application_groups: ids_at(&document, "/properties/applicationSecurityGroups"),
            };
            self.endpoints.insert(id, endpoint);
        }
    }

    pub(super) fn read_link_services(&mut self, documents: &dyn Documents) {
        let interfaces = documents.of_type("Microsoft.Network/networkInterfaces");
        for document in documents.of_type("Microsoft.Network/privateLinkServices") {
            let Some(id) = id_of(&document) else { continue };
            let of_service = |interface: &&Value| {
                id_at(interface, "/properties/privateLinkService/id").as_ref() == Some(&id)
            };
            // The interface holds the addresses; the service's own document only those that were chosen.
            let addresses: Vec<IpAddr> = interfaces
                .iter()
                .find(of_service)
                .unwrap_or(&document)
                .pointer("/properties/ipConfigurations")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|configuration| address_at(configuration, "/properties/privateIPAddress"))
                .collect();
            self.link_services.push(LinkService {
                alias: text_at(&document, "/properties/alias").unwrap_or_default().to_owned(),
                frontends: ids_at(&document, "/properties/loadBalancerFrontendIpConfigurations"),
                addresses,
                proxy_protocol: flag_at(&document, "/properties/enableProxyProtocol"),
                id,
            });
        }
    }

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

impl Endpoint {
    pub(super) fn is_approved(&self) -> bool {
        self.status.eq_ignore_ascii_case("Approved")
    }
}
