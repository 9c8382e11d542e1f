//! Network interfaces, and their public addresses, that come with a machine: made from the configurations
//! in its own network profile or in the model of its flexible scale set.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::machine::network_profile;
use azure_engine::document::{Object, at, fill, into_object, items, name, stored_reference, strip, text};
use azure_engine::error::Refusal;
use azure_engine::provider::AzureState;
use azure_engine::reference::{Reference, Role};

/// Oldest version of Network in which configurations may be written.
const OLDEST_NETWORK: &str = "2020-11-01";

/// What is to be made for one machine.
pub(crate) struct Interfaces {
    /// (id, document, `primary`) of the interfaces.
    nics: Vec<(ResourceId, Object, Value)>,
    /// (id, document) of their public addresses.
    addresses: Vec<(ResourceId, Object)>,
}

impl Interfaces {
    /// Reads the configurations of a network profile that was normalised. All names end in `suffix`.
    pub(crate) fn of(profile: &Value, group: &ResourceId, location: &str, suffix: &str) -> Self {
        let named = |kind: &str, given: &Value| {
            group.resource("Microsoft.Network", kind, &format!("{}-{suffix}", name(given)))
        };
        let mut all = Self { nics: Vec::new(), addresses: Vec::new() };
        for configuration in items(profile, "networkInterfaceConfigurations") {
            let mut properties =
                configuration.get("properties").cloned().map(into_object).unwrap_or_default();
            let primary = properties.get("primary").cloned().unwrap_or(false.into());
            let mut ips = Vec::new();
            for (position, ip) in items(configuration, "properties/ipConfigurations").iter().enumerate() {
                let mut kept = ip.get("properties").cloned().map(into_object).unwrap_or_default();
                strip(&mut kept, &["loadBalancerInboundNatPools"]);
                fill(&mut kept, "primary", position == 0);
                if let Some(public) = kept.remove("publicIPAddressConfiguration") {
                    let id = named("publicIPAddresses", &public);
                    kept.insert("publicIPAddress".into(), json!({ "id": id }));
                    all.addresses.push((id, address(&public, location, suffix)));
                }
                ips.push(json!({ "name": name(ip), "properties": kept }));
            }
            strip(&mut properties, &["primary", "deleteOption"]);
            properties.insert("ipConfigurations".into(), ips.into());
            let mut body = Object::new();
            body.insert("location".into(), location.into());
            body.insert("properties".into(), Value::Object(properties));
            all.nics.push((named("networkInterfaces", configuration), body, primary));
        }
        all
    }

    /// Whether all of it could be made now.
    pub(crate) fn check(&self, azure: &AzureState) -> Result<(), Refusal> {
        for (id, body) in &self.addresses {
            azure.draft(id, body.clone())?;
        }
        for (id, body, _) in &self.nics {
            let mut body = body.clone();
            // Its public addresses are not there yet.
            let ips =
                body.get_mut("properties").and_then(|properties| properties.get_mut("ipConfigurations"));
            for ip in ips.and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(properties) = ip.get_mut("properties").and_then(Value::as_object_mut) {
                    properties.remove("publicIPAddress");
                }
            }
            azure.draft(id, body)?;
        }
        Ok(())
    }

    /// The entries of the machine's network profile.
    pub(crate) fn entries(&self, delete_option: &str) -> Vec<Value> {
        let entry = |(id, _, primary): &(ResourceId, Object, Value)| json!({ "id": id, "properties": { "primary": primary, "deleteOption": delete_option } });
        self.nics.iter().map(entry).collect()
    }

    /// Makes all of it, or nothing.
    pub(crate) fn make(self, azure: &mut AzureState) -> Result<(), Refusal> {
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
fn address(configuration: &Value, location: &str, suffix: &str) -> Object {
    let mut properties = configuration.get("properties").cloned().map(into_object).unwrap_or_default();
    fill(&mut properties, "publicIPAllocationMethod", "Static");
    fill(&mut properties, "deleteOption", "Delete");
    if let Some(Value::Object(dns)) = properties.get_mut("dnsSettings")
        && let Some(label) = dns.get("domainNameLabel").and_then(Value::as_str)
    {
        let label = format!("{label}-{suffix}");
        dns.insert("domainNameLabel".into(), label.into());
    }
    let mut body = Object::new();
    body.insert("location".into(), location.into());
    body.insert(
        "sku".into(),
        configuration.get("sku").cloned().unwrap_or_else(|| json!({ "name": "Standard" })),
    );
    body.insert("properties".into(), Value::Object(properties));
    body
}

/// Configurations need to say which version of Network they are written in.
pub(crate) fn check_version(subject: &ResourceId, profile: Option<&Value>) -> Result<(), Refusal> {
    let Some(profile) =
        profile.filter(|profile| !items(profile, "networkInterfaceConfigurations").is_empty())
    else {
        return Ok(());
    };
    if text(profile, "networkApiVersion").is_some_and(|version| version >= OLDEST_NETWORK) {
        return Ok(());
    }
    Err(Refusal::invalid_parameter(
        "networkProfile.networkApiVersion",
        format!(
            "{subject} has network interface configurations and needs networkProfile.networkApiVersion to be \
             '{OLDEST_NETWORK}' or later."
        ),
    ))
}

/// What the configurations in a profile point at.
pub(crate) fn references(from: &ResourceId, profile: &Value) -> Vec<Reference> {
    let mut targets = Vec::new();
    for (nic, ip) in network_profile::ip_configurations(profile) {
        targets.extend(network_profile::memberships(ip));
        targets.extend(network_profile::subnet(ip));
        targets.extend(stored_reference(nic, "properties/networkSecurityGroup/id"));
    }
    targets.sort();
    targets.dedup();
    targets
        .into_iter()
        .map(|to| Reference { from: from.clone(), to, role: Role::Model, address: None })
        .collect()
}

/// The public addresses that go with an interface.
pub(crate) fn owned_addresses(azure: &AzureState, nic: &ResourceId) -> Vec<ResourceId> {
    let Some(record) = azure.store.get(nic) else { return Vec::new() };
    items(&record.body, "properties/ipConfigurations")
        .iter()
        .filter_map(|ip| stored_reference(ip, "properties/publicIPAddress/id"))
        .filter(|id| {
            let address = azure.store.get(id);
            address.is_some_and(|found| {
                at(&found.body, "properties/deleteOption").is_some_and(|o| o == "Delete")
            })
        })
        .collect()
}
