//! Example node ports for Services that have none yet. A dry run draws them at random; here they depend on the Service
//! and its port, so that the same plan always has the same text.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};

use serde_json::Value;

use crate::manifests::Manifest;

/// The start of Kubernetes' default range of node ports.
const FIRST: u64 = 30_000;
const COUNT: u64 = 2_768;

/// Allocates unused node ports.
pub struct ExamplePorts {
    taken: BTreeSet<u64>,
}

impl ExamplePorts {
    /// Ports other than those of the cluster's Services and those that manifests name.
    pub fn beside(services: Vec<Value>, manifests: &[Manifest]) -> Self {
        let declared = manifests.iter().map(|manifest| &manifest.object);
        Self { taken: services.iter().chain(declared).flat_map(node_ports).collect() }
    }

    /// Whether a Service has node ports that are in none of the `given` Services.
    pub fn are_needed(service: &Value, given: &[&Value]) -> bool {
        let given: BTreeSet<u64> = given.iter().flat_map(|one| node_ports(one)).collect();
        node_ports(service).any(|port| !given.contains(&port))
    }

    /// Replaces the node ports of a Service that are in none of the `given` Services.
    pub fn replace(&mut self, key: &str, service: &mut Value, given: &[&Value]) {
        let given: BTreeSet<u64> = given.iter().flat_map(|one| node_ports(one)).collect();
        // TCP and UDP on one port share a node port.
        let mut chosen: BTreeMap<u64, u64> = BTreeMap::new();
        let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten() {
            let number = port["port"].as_u64().unwrap_or_default();
            if let Some(member) = port.get_mut("nodePort") {
                self.replace_one(member, &given, &mut chosen, &(key, number));
            }
        }
        if let Some(member) = service.pointer_mut("/spec/healthCheckNodePort") {
            self.replace_one(member, &given, &mut chosen, &(key, "health check"));
        }
    }

    fn replace_one(
        &mut self,
        member: &mut Value,
        given: &BTreeSet<u64>,
        chosen: &mut BTreeMap<u64, u64>,
        purpose: &impl Hash,
    ) {
        let Some(drawn) = member.as_u64().filter(|drawn| *drawn != 0 && !given.contains(drawn)) else {
            return;
        };
        let port = *chosen.entry(drawn).or_insert_with(|| self.take(purpose));
        *member = port.into();
    }

    /// The first free port, starting at one that is derived from the purpose.
    fn take(&mut self, purpose: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        purpose.hash(&mut hasher);
        let begin = hasher.finish() % COUNT;
        let mut all = (0..COUNT).map(|step| FIRST + (begin + step) % COUNT);
        let port = all.find(|port| !self.taken.contains(port)).unwrap_or(FIRST + begin);
        self.taken.insert(port);
        port
    }
}

fn node_ports(service: &Value) -> impl Iterator<Item = u64> {
    let spec = &service["spec"];
    let ports = spec["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]);
    ports.chain([&spec["healthCheckNodePort"]]).filter_map(Value::as_u64).filter(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn drawn_ports_are_replaced_and_given_ones_stay() {
        let drawn = |tcp: u64, health: u64| {
            json!({"spec": {"healthCheckNodePort": health, "ports": [
                {"port": 80, "protocol": "TCP", "nodePort": tcp}, {"port": 80, "protocol": "UDP", "nodePort": tcp},
                {"port": 443, "nodePort": 30_443}, {"port": 81}]}})
        };
        let manifest = json!({"spec": {"ports": [{"port": 443, "nodePort": 30_443}]}});
        let replaced = |taken: &[u64], mut service: Value| {
            let taken = taken.iter().map(|port| json!({"spec": {"ports": [{"nodePort": port}]}})).collect();
            assert!(ExamplePorts::are_needed(&service, &[&manifest]));
            ExamplePorts::beside(taken, &[]).replace("shop/web", &mut service, &[&manifest]);
            node_ports(&service).collect::<Vec<_>>()
        };
        let first = replaced(&[], drawn(31_000, 32_000));
        assert_eq!(first, replaced(&[], drawn(30_001, 30_002)));
        assert_eq!(first[0], first[1], "TCP and UDP share one");
        assert_eq!(first[2], 30_443);
        assert_ne!(first[3], first[0]);
        let beside = replaced(&first, drawn(31_000, 32_000));
        assert!(beside[0] != first[0] && beside[3] != first[3], "{beside:?}");
        assert!(!ExamplePorts::are_needed(&manifest, &[&manifest]));
    }
}
