//! The network, read once from its documents.

mod balancer;
mod inbound_nat;
mod machine;
mod private_link;
mod virtual_network;

use std::sync::Arc;

use crate::balancer::LoadBalancer;
use crate::json::{address_at, id_at, id_of, text_at};
use crate::network::{Network, PublicAddress};
use crate::security_group::SecurityGroup;
use azure_engine::document::reading::Documents;

impl Network {
    /// Reads the network out of a simulated Azure.
    pub fn read(documents: &dyn Documents) -> Self {
        let mut network = Self::default();
        // One moment for all of it: a machine that goes meanwhile is in no pool either.
        documents.at_once(&mut |documents| network = Self::of(documents));
        network
    }

    fn of(documents: &dyn Documents) -> Self {
        let mut network = Self::default();
        network.read_virtual_networks(documents);
        for document in documents.of_type("Microsoft.Network/networkSecurityGroups") {
            if let Some(id) = id_of(&document) {
                network.groups.insert(id.clone(), Arc::new(SecurityGroup::read(id, &document)));
            }
        }
        network.read_public_addresses(documents);
        network.read_endpoints(documents);
        network.read_machines(documents);
        for document in documents.of_type("Microsoft.Network/loadBalancers") {
            if let Some(balancer) = LoadBalancer::read(&document, &network) {
                network.balancers.push(balancer);
            }
        }
        network.read_link_services(documents);
        network
    }

    fn read_public_addresses(&mut self, documents: &dyn Documents) {
        for document in documents.of_type("Microsoft.Network/publicIPPrefixes") {
            let prefix = text_at(&document, "/properties/ipPrefix").and_then(|text| text.parse().ok());
            if let (Some(id), Some(prefix)) = (id_of(&document), prefix) {
                self.public_prefixes.insert(id, prefix);
            }
        }
        for document in documents.of_type("Microsoft.Network/publicIPAddresses") {
            let Some(id) = id_of(&document) else { continue };
            self.public_addresses.push(PublicAddress {
                id,
                address: address_at(&document, "/properties/ipAddress"),
                region: text_at(&document, "/location").unwrap_or_default().to_owned(),
                standard: text_at(&document, "/sku/name")
                    .is_some_and(|sku| !sku.eq_ignore_ascii_case("Basic")),
                used_by: id_at(&document, "/properties/ipConfiguration/id"),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use azure_engine::document::reading::Documents;
    use azure_types::ResourceId;
    use serde_json::Value;

    use crate::Network;

    /// Collects parts that are read at different moments.
    #[derive(Default)]
    struct Watched {
        moments: Cell<u32>,
        reads: Cell<u32>,
    }

    struct Moment<'a>(&'a Watched);

    impl Documents for Watched {
        fn document(&self, _: &ResourceId) -> Option<Value> {
            panic!("a document is read between two moments");
        }

        fn of_type(&self, resource_type: &str) -> Vec<Value> {
            panic!("{resource_type} is read between two moments");
        }

        fn at_once(&self, read: &mut dyn FnMut(&dyn Documents)) {
            self.moments.set(self.moments.get() + 1);
            read(&Moment(self));
        }
    }

    impl Documents for Moment<'_> {
        fn document(&self, _: &ResourceId) -> Option<Value> {
            None
        }

        fn of_type(&self, _: &str) -> Vec<Value> {
            self.0.reads.set(self.0.reads.get() + 1);
            Vec::new()
        }

        fn at_once(&self, read: &mut dyn FnMut(&dyn Documents)) {
            read(self);
        }
    }

    #[test]
    fn a_network_is_read_at_one_moment() {
        let watched = Watched::default();
        Network::read(&watched);
        assert_eq!(watched.moments.get(), 1);
        assert!(watched.reads.get() > 5, "hardly anything was read");
    }
}
