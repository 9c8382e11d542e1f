//! The positions of a load balancer's parts in its document: a Service finds its own parts, and the ones that may
//! conflict with them, without scanning those of all others.
//!
//! An index is a hint. Parts are added and changed while it is in use, so callers check what it returns.

use std::collections::HashMap;

use azure_types::{FrontendIpConfiguration, LoadBalancerProperties, LoadBalancingRule, ResourceId};

use super::parts::{base_of, text};

/// Positions in a list of the document.
type Positions = Vec<usize>;

/// Frontends by the Service that they are named after.
#[derive(Debug, Default)]
pub(crate) struct FrontendIndex(HashMap<String, Positions>);

impl FrontendIndex {
    pub(crate) fn new(frontends: &[FrontendIpConfiguration]) -> Self {
        let mut index = Self::default();
        frontends.iter().enumerate().for_each(|(at, frontend)| index.add(at, text(&frontend.name)));
        index
    }

    pub(super) fn add(&mut self, at: usize, name: &str) {
        self.0.entry(base_of(name)).or_default().push(at);
    }

    /// Whether any frontend is [like](Self::like) this name.
    pub(crate) fn has_like(&self, name: &str) -> bool {
        self.0.contains_key(&base_of(name))
    }

    /// The frontends with the same base name: their names are equal up to the first dash.
    pub(crate) fn like<'a>(
        &'a self,
        frontends: &'a [FrontendIpConfiguration],
        name: &str,
    ) -> impl Iterator<Item = &'a FrontendIpConfiguration> {
        self.placed_like(frontends, name).map(|(_, frontend)| frontend)
    }

    /// The same, with their positions.
    pub(super) fn placed_like<'a>(
        &'a self,
        frontends: &'a [FrontendIpConfiguration],
        name: &str,
    ) -> impl Iterator<Item = (usize, &'a FrontendIpConfiguration)> {
        let positions = self.0.get(&base_of(name)).map(Vec::as_slice).unwrap_or_default();
        positions.iter().filter_map(|at| Some((*at, frontends.get(*at)?)))
    }
}

/// Rules and probes by what a new rule may conflict with.
#[derive(Debug, Default)]
pub(super) struct RuleIndex {
    by_name: HashMap<String, usize>,
    probes: HashMap<String, usize>,
    by_frontend: HashMap<ResourceId, Positions>,
    by_pool: HashMap<ResourceId, Positions>,
    /// Rules without floating IP, by their ports on nodes.
    by_backend_port: HashMap<i32, Positions>,
}

impl RuleIndex {
    pub(super) fn new(properties: &LoadBalancerProperties) -> Self {
        let mut index = Self::default();
        for (at, rule) in properties.load_balancing_rules.iter().flatten().enumerate() {
            index.add(at, rule);
        }
        for (at, probe) in properties.probes.iter().flatten().enumerate() {
            index.add_probe(at, text(&probe.name));
        }
        index
    }

    pub(super) fn add(&mut self, at: usize, rule: &LoadBalancingRule) {
        self.by_name.entry(text(&rule.name).to_ascii_lowercase()).or_insert(at);
        let Some(properties) = &rule.properties else { return };
        let id = |part: &Option<azure_types::SubResource>| part.as_ref().and_then(|part| part.id.clone());
        if let Some(frontend) = id(&properties.frontend_ip_configuration) {
            self.by_frontend.entry(frontend).or_default().push(at);
        }
        if let Some(pool) = id(&properties.backend_address_pool) {
            self.by_pool.entry(pool).or_default().push(at);
        }
        if properties.enable_floating_ip != Some(true) {
            self.by_backend_port.entry(properties.backend_port.unwrap_or_default()).or_default().push(at);
        }
    }

    pub(super) fn add_probe(&mut self, at: usize, name: &str) {
        self.probes.entry(name.to_ascii_lowercase()).or_insert(at);
    }

    pub(super) fn rule(&self, name: &str) -> Option<usize> {
        self.by_name.get(&name.to_ascii_lowercase()).copied()
    }

    pub(super) fn probe(&self, name: &str) -> Option<usize> {
        self.probes.get(&name.to_ascii_lowercase()).copied()
    }

    /// The rules of a frontend and the rules with this port on nodes, in the document's order.
    pub(super) fn meeting(&self, frontend: &ResourceId, backend_port: i32) -> Positions {
        let of_frontend = self.by_frontend.get(frontend).into_iter().flatten();
        let mut found: Positions = of_frontend
            .chain(self.by_backend_port.get(&backend_port).into_iter().flatten())
            .copied()
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The rules of a pool.
    pub(super) fn leading_to(&self, pool: &ResourceId) -> &[usize] {
        self.by_pool.get(pool).map(Vec::as_slice).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_are_found_by_all_that_they_refer_to() {
        let id = |kind: &str, name: &str| {
            let group = ResourceId::group("s", "rg");
            group.resource("Microsoft.Network", "loadBalancers", "one").child(kind, name)
        };
        let (frontend, pool) =
            (|name: &str| id("frontendIPConfigurations", name), |name: &str| id("backendAddressPools", name));
        let rule = |name: &str, at: &str, to: &str, port: i32, floats: Option<bool>| {
            json!({"name": name, "properties": {
                "frontendIPConfiguration": {"id": frontend(at)}, "backendAddressPool": {"id": pool(to)},
                "backendPort": port, "enableFloatingIP": floats,
            }})
        };
        let properties: LoadBalancerProperties = serde_json::from_value(json!({
            "loadBalancingRules": [
                rule("a-TCP-1", "f", "p", 1, Some(true)),
                rule("a-TCP-2", "f", "q", 2, Some(false)),
                rule("b-TCP-2", "g", "q", 2, None),
                {"name": "bare"},
            ],
            "probes": [{"name": "a-TCP-1"}, {"name": "B"}],
        }))
        .unwrap();
        let index = RuleIndex::new(&properties);
        let names = ["A-tcp-2", "bare", "none"].map(|name| index.rule(name));
        assert_eq!(names, [Some(1), Some(3), None]);
        assert_eq!(["a-TCP-1", "b", "none"].map(|name| index.probe(name)), [Some(0), Some(1), None]);
        for (name, expected) in [("p", &[0][..]), ("q", &[1, 2]), ("none", &[])] {
            assert_eq!(index.leading_to(&pool(name)), expected, "{name}");
        }
        // Rules with floating IP are met by their frontend alone.
        for (name, port, expected) in
            [("f", 2, &[0, 1, 2][..]), ("g", 2, &[1, 2]), ("g", 1, &[2]), ("none", 1, &[]), ("f", 9, &[0, 1])]
        {
            assert_eq!(index.meeting(&frontend(name), port), expected, "{name} {port}");
        }
    }
}
