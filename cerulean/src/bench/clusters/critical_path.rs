//! How long Azure alone takes for a cluster.
//!
//! A resource waits for the resources whose IDs are in its document, and for its parents. Machines also wait for the
//! whole network: Cluster API creates none before the cluster's infrastructure is ready. The longest chain of writes
//! with these dependencies is the critical path: no program can create the cluster faster.
//!
//! The final state of Azure gives the documents; the journal of the run gives the duration of each write, from the
//! request to the end of the operation. So the path is subject to the same jitter as the run, without what a program
//! adds: reads, waits between polls, a second write of the same resource.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use azure_simulator::{JournalEntry, RequestKind};
use azure_types::ResourceId;
use serde_json::Value;

use crate::bench::services::critical_path::duration;

/// The types in an order in which they can be created. Documents also name later resources (a load balancer its
/// members); such references cause no wait.
const ORDER: &[&str] = &[
    "Microsoft.Resources/resourceGroups",
    // Its document contains its subnets, and so all that they name.
    "Microsoft.Network/virtualNetworks",
    "Microsoft.Network/publicIPAddresses",
    "Microsoft.Network/networkSecurityGroups",
    "Microsoft.Network/routeTables",
    "Microsoft.Network/natGateways",
    "Microsoft.Network/virtualNetworks/subnets",
    "Microsoft.Network/loadBalancers",
    "Microsoft.ContainerService/managedClusters",
    "Microsoft.ContainerService/managedClusters/agentPools",
    FIRST_OF_A_MACHINE,
    "Microsoft.Network/networkInterfaces",
    "Microsoft.Compute/availabilitySets",
    "Microsoft.Compute/disks",
    "Microsoft.Compute/virtualMachines",
    "Microsoft.Compute/virtualMachines/extensions",
];
const FIRST_OF_A_MACHINE: &str = "Microsoft.Network/loadBalancers/inboundNatRules";

/// The longest chain of writes, each of which needs the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// Its steps, in order: names of resources and the durations of their writes.
    pub steps: Vec<(String, Duration)>,
}

/// A resource that was written.
struct Written {
    id: ResourceId,
    rank: usize,
    took: Duration,
}

impl CriticalPath {
    /// The path through the written resources; `document` returns Azure's documents.
    pub fn of(entries: &[JournalEntry], document: impl Fn(&ResourceId) -> Option<Value>) -> Self {
        let mut written: Vec<Written> = longest_writes(entries);
        written.sort_by_key(|one| one.rank);
        let places: HashMap<ResourceId, usize> =
            written.iter().enumerate().map(|(place, one)| (one.id.clone(), place)).collect();
        let first_of_machines = rank(FIRST_OF_A_MACHINE);
        let network_ends = written.partition_point(|one| one.rank < first_of_machines);
        // For each resource, the length of the longest chain up to its end, and the previous resource in it.
        let mut chains: Vec<(Duration, Option<usize>)> = Vec::new();
        for (place, one) in written.iter().enumerate() {
            let mut named = Vec::new();
            if let Some(document) = document(&one.id) {
                mentioned(&document, &mut named);
            }
            named.extend(one.id.parent());
            let mut before: Vec<usize> = named.iter().filter_map(|id| place_of(id, &places)).collect();
            if place >= network_ends {
                before.extend(0..network_ends);
            }
            before.retain(|other| written.get(*other).is_some_and(|other| other.rank < one.rank));
            let latest = before.into_iter().max_by_key(|other| length(&chains, *other));
            chains.push((one.took + latest.map_or(Duration::ZERO, |it| length(&chains, it)), latest));
        }
        let mut steps = Vec::new();
        let mut next = (0..chains.len()).max_by_key(|place| length(&chains, *place));
        while let Some(place) = next {
            if let Some(one) = written.get(place) {
                steps.push((one.id.name().to_owned(), one.took));
            }
            next = chains.get(place).and_then(|(_, before)| *before);
        }
        steps.reverse();
        Self { steps }
    }

    /// The total duration.
    pub fn length(&self) -> Duration {
        self.steps.iter().map(|(_, took)| *took).sum()
    }
}

/// Its steps in words.
impl std::fmt::Display for CriticalPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (name, took)) in self.steps.iter().enumerate() {
            write!(f, "{}{name} {:.1} s", if index == 0 { "" } else { ", " }, took.as_secs_f64())?;
        }
        Ok(())
    }
}

fn length(chains: &[(Duration, Option<usize>)], place: usize) -> Duration {
    chains.get(place).map_or(Duration::ZERO, |(length, _)| *length)
}

fn rank(resource_type: &str) -> usize {
    ORDER.iter().position(|known| known.eq_ignore_ascii_case(resource_type)).unwrap_or(ORDER.len())
}

/// The longest accepted write of each resource.
fn longest_writes(entries: &[JournalEntry]) -> Vec<Written> {
    let mut longest: BTreeMap<ResourceId, Duration> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.kind == RequestKind::Write && entry.accepted()) {
        let Some(Ok(id)) = entry.resource.as_deref().map(ResourceId::parse) else { continue };
        let known = longest.entry(id).or_default();
        *known = duration(entry).max(*known);
    }
    longest.into_iter().map(|(id, took)| Written { rank: rank(&id.resource_type()), id, took }).collect()
}

/// Collects all IDs in a document.
fn mentioned(value: &Value, ids: &mut Vec<ResourceId>) {
    match value {
        Value::String(text) => ids.extend(ResourceId::parse(text)),
        Value::Array(items) => items.iter().for_each(|item| mentioned(item, ids)),
        Value::Object(members) => members.values().for_each(|member| mentioned(member, ids)),
        _ => {}
    }
}

/// The position of the resource that an ID names, or of its nearest parent.
fn place_of(id: &ResourceId, places: &HashMap<ResourceId, usize>) -> Option<usize> {
    let mut above = Some(id.clone());
    while let Some(id) = above {
        if let Some(place) = places.get(&id) {
            return Some(*place);
        }
        above = id.parent();
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GROUP: &str = "/subscriptions/s/resourceGroups/c";

    fn id(rest: &str) -> String {
        format!("{GROUP}/providers/{rest}")
    }

    fn put(resource: &str, seconds: u64, status: u16) -> JournalEntry {
        serde_json::from_value(json!({
            "sequence": 1, "time": "2026-01-01T00:00:00Z", "method": "PUT", "path": resource, "status": status,
            "kind": "write", "resourceType": ResourceId::parse(resource).unwrap().resource_type(), "resource": resource,
            "answerMs": 0, "operationMs": seconds * 1_000,
        }))
        .unwrap()
    }

    /// The address is the longest single write before machines, but nothing slow needs it; a machine waits for the
    /// network, and a load balancer does not wait for its members.
    #[test]
    fn the_path_follows_what_documents_name() {
        let address = id("Microsoft.Network/publicIPAddresses/ip");
        let gateway = id("Microsoft.Network/natGateways/gateway");
        let subnet = id("Microsoft.Network/virtualNetworks/net/subnets/nodes");
        let network = id("Microsoft.Network/virtualNetworks/net");
        let balancer = id("Microsoft.Network/loadBalancers/lb");
        let nic = id("Microsoft.Network/networkInterfaces/vm-nic");
        let machine = id("Microsoft.Compute/virtualMachines/vm");
        let entries = [
            put(GROUP, 1, 201),
            put(&network, 3, 201),
            put(&address, 9, 201),
            put(&gateway, 2, 201),
            put(&subnet, 4, 200),
            put(&subnet, 2, 200),
            put(&balancer, 5, 201),
            put(&nic, 1, 201),
            put(&machine, 20, 201),
            put(&machine, 90, 409),
        ];
        let documents = HashMap::from([
            (gateway.clone(), json!({ "publicIpAddresses": [{ "id": address }] })),
            (subnet.clone(), json!({ "natGateway": { "id": gateway } })),
            (network.clone(), json!({ "subnets": [{ "id": subnet, "natGateway": { "id": gateway } }] })),
            (balancer.clone(), json!({ "members": [{ "id": format!("{nic}/ipConfigurations/pipConfig") }] })),
            (
                nic.clone(),
                json!({ "subnet": { "id": subnet }, "pool": { "id": format!("{balancer}/pools/a") } }),
            ),
            (machine.clone(), json!({ "nic": { "id": nic } })),
        ]);
        let path = CriticalPath::of(&entries, |id| documents.get(id.as_str()).cloned());
        assert_eq!(
            path.to_string(),
            "c 1.0 s, ip 9.0 s, gateway 2.0 s, nodes 4.0 s, vm-nic 1.0 s, vm 20.0 s"
        );
        assert_eq!(path.length(), Duration::from_secs(37));
    }

    #[test]
    fn nothing_written_is_no_path() {
        assert_eq!(CriticalPath::of(&[], |_| None), CriticalPath::default());
    }
}
