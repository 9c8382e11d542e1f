//! Private endpoints and services, out of their documents.

use std::net::IpAddr;

use serde_json::Value;

use crate::json::{address_at, flag_at, id_at, id_of, ids_at, items, text_at};
use crate::network::Network;
use crate::private_link::{Endpoint, LinkService};
use azure_engine::document::reading::Documents;

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
}
