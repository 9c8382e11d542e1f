//! Changes by others to resources that come and go with Services and machines, and to any resource between a read and a
//! write. They must stay as long as the resource exists.

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use serde_json::{Value, json};
use testkit::World;
use testkit::types::{INSTANCES, INTERFACES, PUBLIC_IPS};

use super::act::OVERTAKEN;

/// The paths of the IP configurations of a uniform set's instance, and of an interface.
const CONFIGURATIONS: [&str; 2] = [
    "/properties/networkProfileConfiguration/networkInterfaceConfigurations/0/properties/ipConfigurations/0",
    "/properties/ipConfigurations/0",
];

/// The prefix of the names of machines that are deleted and created again under the same name.
pub(super) const COMES_AGAIN: &str = "extra-";

/// The changes by others.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The foreign tags of public IPs, by GUID: a recreated one has another.
    addresses: BTreeMap<String, String>,
    /// The foreign tags of interfaces.
    interfaces: BTreeMap<ResourceId, String>,
    /// Instances and interfaces, each with a foreign pool that it was added to.
    pools: BTreeSet<(ResourceId, String)>,
}

impl Marks {
    pub(super) fn tag_addresses(&mut self, world: &World, value: u64) {
        for document in world.azure.documents_of_type(PUBLIC_IPS) {
            let guid = document["properties"]["resourceGuid"].as_str();
            let id = document["id"].as_str().and_then(|id| id.parse::<ResourceId>().ok());
            let is_made = !document["tags"]["k8s-azure-service"].is_null();
            let (Some(guid), Some(id), true) = (guid, id, is_made) else { continue };
            let tagged =
                world.azure.edit(&id, |document| document["tags"]["owner"] = value.to_string().into());
            // Azure may refuse it, for example while an operation is running.
            if tagged.is_ok() {
                self.addresses.insert(guid.to_owned(), value.to_string());
            }
        }
    }

    /// Tags an interface; for a uniform set's instance, the set is tagged.
    pub(super) fn tag_interface(&mut self, world: &World, number: usize, value: u64) {
        let Some(id) = member(world, &[INTERFACES], number) else { return };
        let tag = |document: &mut Value| document["tags"]["owner"] = value.to_string().into();
        if world.azure.edit(&id, tag).is_ok() {
            self.interfaces.insert(id, value.to_string());
        }
    }

    /// Adds an instance or an interface to another pool.
    pub(super) fn take_member(&mut self, world: &World, number: usize, pool: &ResourceId) {
        let Some(id) = member(world, &[INSTANCES, INTERFACES], number) else { return };
        let reference = json!({"id": pool});
        let taken = world.azure.edit(&id, |document| {
            let Some(configuration) = configuration_of(document) else { return };
            let pools = &mut configuration["properties"]["loadBalancerBackendAddressPools"];
            if pools.is_null() {
                *pools = json!([]);
            }
            if let Some(pools) = pools.as_array_mut().filter(|pools| !pools.contains(&reference)) {
                pools.push(reference.clone());
            }
        });
        if taken.is_ok() {
            self.pools.insert((id, pool.to_string()));
        }
    }

    /// The changes that were lost.
    pub(super) fn lost(&self, world: &World) -> Vec<String> {
        let mut lost = Vec::new();
        for document in world.azure.documents_of_type(PUBLIC_IPS) {
            let guid = document["properties"]["resourceGuid"].as_str().unwrap_or_default();
            if self.addresses.get(guid).is_some_and(|wanted| document["tags"]["owner"] != wanted.as_str()) {
                lost.push(format!("public IP {} lost a tag of others", document["name"]));
            }
        }
        for (id, wanted) in &self.interfaces {
            let document = world.azure.document(id);
            if document.is_some_and(|document| document["tags"]["owner"] != wanted.as_str()) {
                lost.push(format!("{id} lost a tag of others"));
            }
        }
        for (id, pool) in &self.pools {
            let Some(mut document) = world.azure.document(id) else { continue };
            let pools = configuration_of(&mut document)
                .map(|configuration| configuration["properties"]["loadBalancerBackendAddressPools"].take());
            let is_member = |one: &Value| one["id"].as_str().is_some_and(|id| id.eq_ignore_ascii_case(pool));
            if !pools.as_ref().and_then(Value::as_array).is_some_and(|pools| pools.iter().any(is_member)) {
                lost.push(format!("{id} left the pool {pool} of others"));
            }
        }
        lost.extend(overwritten(world));
        lost
    }
}

/// Resources that lost a change between a read and a write.
fn overwritten(world: &World) -> Vec<String> {
    let mut written = BTreeSet::new();
    for entry in world.azure.journal().entries {
        let Some(resource) = entry.resource else { continue };
        if entry.method == "DELETE" {
            written.remove(&resource);
        } else if entry.fault.as_deref() == Some(OVERTAKEN) && matches!(entry.status, 200 | 412) {
            written.insert(resource);
        }
    }
    let ids = written.iter().filter_map(|id| id.parse::<ResourceId>().ok());
    let lost = ids.filter(|id| {
        let document = world.azure.document(id);
        !id.name().starts_with(COMES_AGAIN)
            && !id.resource_type().eq_ignore_ascii_case(INSTANCES)
            && document.is_some_and(|document| document["tags"][OVERTAKEN] != "yes")
    });
    lost.map(|id| format!("{id} lost what was written between a read and a write")).collect()
}

/// One of the resources of these types that exist permanently.
fn member(world: &World, kinds: &[&str], number: usize) -> Option<ResourceId> {
    let documents = kinds.iter().flat_map(|kind| world.azure.documents_of_type(kind));
    let ids = documents.filter_map(|document| document["id"].as_str()?.parse::<ResourceId>().ok());
    let mut ids: Vec<ResourceId> = ids.filter(|id| !id.name().starts_with(COMES_AGAIN)).collect();
    ids.sort_by_key(ToString::to_string);
    (!ids.is_empty()).then(|| ids.swap_remove(number % ids.len()))
}

fn configuration_of(document: &mut Value) -> Option<&mut Value> {
    let at = CONFIGURATIONS.into_iter().find(|at| document.pointer(at).is_some())?;
    document.pointer_mut(at)
}
