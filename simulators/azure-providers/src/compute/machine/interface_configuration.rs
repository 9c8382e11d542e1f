//! Network interfaces, and their public addresses, that come with a machine: made from the configurations
//! in its own network profile or in the model of its flexible scale set.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::machine::members::NETWORK_OF_MODEL;
use azure_engine::document::{
    Object, at_mut, fill_at, into_object, items, items_mut, name, remove_at, stored_reference, text,
};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Refusal, Result};
use azure_engine::store::reference::{Reference, Role};
use azure_engine::types::member_table::pointers_below;

/// Oldest version of Network in which configurations may be written.
const OLDEST_NETWORK: &str = "2020-11-01";

/// The interfaces and addresses to create for one machine.
pub(crate) struct Interfaces {
    /// (id, document, `primary`) of the interfaces.
    nics: Vec<(ResourceId, Object, Value)>,
    /// (id, document) of their public addresses.
    addresses: Vec<(ResourceId, Object)>,
}

impl Interfaces {
    /// Reads the configurations of a network profile that was normalised. All names end in `suffix`.
    pub(crate) fn of(profile: &Value, machine: &ResourceId, location: &str, suffix: &str) -> Self {
        let group = ResourceId::group(machine.subscription_id(), machine.group_name().unwrap_or_default());
        let named = |kind: &str, given: &Value| {
            group.resource("Microsoft.Network", kind, &format!("{}-{suffix}", name(given)))
        };
        let mut all = Self { nics: Vec::new(), addresses: Vec::new() };
        for configuration in items(profile, "networkInterfaceConfigurations") {
            let mut properties = configuration.get("properties").cloned().unwrap_or_default();
            let primary = remove_at(&mut properties, "primary").unwrap_or(false.into());
            remove_at(&mut properties, "deleteOption");
            for (position, ip) in items_mut(&mut properties, "ipConfigurations").iter_mut().enumerate() {
                remove_at(ip, "properties/loadBalancerInboundNatPools");
                fill_at(ip, "properties/primary", position == 0);
                if let Some(public) = remove_at(ip, "properties/publicIPAddressConfiguration") {
                    let id = named("publicIPAddresses", &public);
                    ip["properties"]["publicIPAddress"] = json!({ "id": id });
                    all.addresses.push((id, address(public, location, suffix)));
                }
            }
            let body = into_object(json!({ "location": location, "properties": properties }));
            all.nics.push((named("networkInterfaces", configuration), body, primary));
        }
        all
    }

    /// Checks that all of it can be created now.
    pub(crate) fn check(&self, azure: &AzureState) -> Result<()> {
        for (id, body) in &self.addresses {
            azure.draft(id, body.clone())?;
        }
        for (id, body, _) in &self.nics {
            let mut body = Value::Object(body.clone());
            // Its public addresses do not exist yet.
            for ip in items_mut(&mut body, "properties/ipConfigurations") {
                remove_at(ip, "properties/publicIPAddress");
            }
            azure.draft(id, into_object(body))?;
        }
        Ok(())
    }

    /// The entries of the machine's network profile.
    pub(crate) fn entries(&self, delete_option: &str) -> Vec<Value> {
        let entry = |(id, _, primary): &(ResourceId, Object, Value)| json!({ "id": id, "properties": { "primary": primary, "deleteOption": delete_option } });
        self.nics.iter().map(entry).collect()
    }

    /// Makes all of it, or nothing.
    pub(crate) fn make(self, azure: &mut AzureState) -> Result<()> {
        let nics = self.nics.into_iter().map(|(id, body, _)| (id, body));
        let mut made = Vec::new();
        for (id, body) in self.addresses.into_iter().chain(nics) {
            if let Err(refusal) = azure.make(&id, body) {
                made.iter().rev().for_each(|id| azure.remove(id));
                return Err(refusal);
            }
            made.push(id);
        }
        Ok(())
    }
}

/// The document of a public address; a label for its name is made unique.
fn address(mut configuration: Value, location: &str, suffix: &str) -> Object {
    fill_at(&mut configuration, "properties/publicIPAllocationMethod", "Static");
    fill_at(&mut configuration, "properties/deleteOption", "Delete");
    fill_at(&mut configuration, "sku/name", "Standard");
    if let Some(label) = at_mut(&mut configuration, "properties/dnsSettings/domainNameLabel") {
        *label = format!("{}-{suffix}", label.as_str().unwrap_or_default()).into();
    }
    let (sku, properties) = (&configuration["sku"], &configuration["properties"]);
    into_object(json!({ "location": location, "sku": sku, "properties": properties }))
}

/// Configurations need to say which version of Network they are written in.
pub(crate) fn check_version(subject: &ResourceId, profile: &Value) -> Result<()> {
    let version = text(profile, "networkApiVersion").unwrap_or_default();
    let wrong = version < OLDEST_NETWORK && !items(profile, "networkInterfaceConfigurations").is_empty();
    Refusal::invalid_when(
        wrong,
        "networkProfile.networkApiVersion",
        format_args!(
            "{subject} has network interface configurations and needs networkProfile.networkApiVersion to be \
         '{OLDEST_NETWORK}' or later."
        ),
    )
}

/// What a profile and the configurations in it point at.
pub(crate) fn references(from: &ResourceId, profile: &Value) -> Vec<Reference> {
    let mut all = pointers_below(&NETWORK_OF_MODEL, from, profile, Role::Model);
    all.iter_mut().for_each(|reference| reference.from = from.clone());
    all.sort_by(|a, b| a.to.cmp(&b.to));
    all.dedup_by(|a, b| a.to == b.to);
    all
}

/// The public addresses that go with an interface.
pub(crate) fn owned_addresses(azure: &AzureState, nic: &ResourceId) -> Vec<ResourceId> {
    let Some(record) = azure.store.get(nic) else { return Vec::new() };
    let goes = |address: &Record| text(&address.body, "properties/deleteOption") == Some("Delete");
    items(&record.body, "properties/ipConfigurations")
        .iter()
        .filter_map(|ip| stored_reference(ip, "properties/publicIPAddress/id"))
        .filter(|id| azure.store.get(id).is_some_and(goes))
        .collect()
}
