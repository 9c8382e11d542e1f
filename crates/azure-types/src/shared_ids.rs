//! IDs that documents share.

use std::collections::HashSet;
use std::sync::Arc;

use crate::document::SubResource;
use crate::load_balancer::LoadBalancer;
use crate::resource_id::ResourceId;

/// The texts of IDs, each stored once. The parts of a load balancer refer to each other by IDs of some three hundred
/// letters, and the load balancers of a cluster have the same members: most of a large one consists of IDs that occur
/// four times.
///
/// IDs with different spellings stay different.
#[derive(Debug, Default)]
pub struct SharedIds(HashSet<Arc<str>>);

impl SharedIds {
    /// Lets an ID share the text of an equal one that was seen before.
    pub fn share(&mut self, id: &mut ResourceId) {
        let text = id.shared_text();
        match self.0.get(text) {
            Some(shared) => *text = Arc::clone(shared),
            None => drop(self.0.insert(Arc::clone(text))),
        }
    }

    /// Does that for the IDs in a load balancer.
    pub fn share_all(&mut self, document: &mut LoadBalancer) {
        let Some(properties) = &mut document.properties else { return };
        for frontend in properties.frontend_ip_configurations.iter_mut().flatten() {
            self.share_some(&mut frontend.id);
            let Some(properties) = &mut frontend.properties else { continue };
            self.share_reference(&mut properties.public_ip_address);
            self.share_references(&mut properties.load_balancing_rules);
            self.share_references(&mut properties.outbound_rules);
        }
        for pool in properties.backend_address_pools.iter_mut().flatten() {
            self.share_some(&mut pool.id);
            let Some(properties) = &mut pool.properties else { continue };
            self.share_reference(&mut properties.virtual_network);
            self.share_references(&mut properties.load_balancing_rules);
        }
        for rule in properties.load_balancing_rules.iter_mut().flatten() {
            self.share_some(&mut rule.id);
            let Some(properties) = &mut rule.properties else { continue };
            self.share_reference(&mut properties.frontend_ip_configuration);
            self.share_reference(&mut properties.backend_address_pool);
            self.share_reference(&mut properties.probe);
        }
        for probe in properties.probes.iter_mut().flatten() {
            self.share_some(&mut probe.id);
            let Some(properties) = &mut probe.properties else { continue };
            self.share_references(&mut properties.load_balancing_rules);
        }
    }

    /// Forgets the IDs that no document uses any more.
    pub fn forget_unused(&mut self) {
        self.0.retain(|text| Arc::strong_count(text) > 1);
        self.0.shrink_to_fit();
    }

    fn share_some(&mut self, id: &mut Option<ResourceId>) {
        id.iter_mut().for_each(|id| self.share(id));
    }

    fn share_reference(&mut self, reference: &mut Option<SubResource>) {
        reference.iter_mut().for_each(|reference| self.share_some(&mut reference.id));
    }

    fn share_references(&mut self, references: &mut Option<Vec<SubResource>>) {
        references.iter_mut().flatten().for_each(|reference| self.share_some(&mut reference.id));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// NODE-263: sharing changes nothing, and different spellings are not shared.
    #[test]
    fn node_263_a_load_balancer_whose_ids_are_shared_is_the_same() {
        let id = |path: &str| {
            format!("/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/lb{path}")
        };
        let rule = |name: &str| json!({"id": id(&format!("/loadBalancingRules/{name}"))});
        let text = json!({"properties": {
            "frontendIPConfigurations": [{"id": id("/frontendIPConfigurations/f"), "properties": {
                "loadBalancingRules": [rule("R"), rule("other")]}}],
            "backendAddressPools": [{"id": id("/backendAddressPools/p"), "properties": {"loadBalancingRules": [rule("r")]}}],
            "loadBalancingRules": [{"id": id("/loadBalancingRules/r"), "properties": {
                "frontendIPConfiguration": {"id": id("/frontendIPConfigurations/f")}, "unknown": 1}}],
            "probes": [{"properties": {"loadBalancingRules": [rule("r")]}}],
        }});
        let mut document: LoadBalancer = serde_json::from_value(text.clone()).unwrap();
        let mut shared = SharedIds::default();
        shared.share_all(&mut document);
        assert_eq!(serde_json::to_value(&document).unwrap(), text);
        // f, p, r, and the two that only the frontend has.
        assert_eq!(shared.0.len(), 5);
        let r = shared.0.iter().find(|id| id.ends_with("/r")).unwrap();
        assert_eq!(Arc::strong_count(r), 4);
        drop(document);
        shared.forget_unused();
        assert!(shared.0.is_empty());
    }
}
