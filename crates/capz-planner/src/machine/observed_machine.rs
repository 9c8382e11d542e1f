//! The observed state of an existing machine, for the AzureMachine's spec and status.

use capz_api::azure_machine::NodeAddress;
use serde_json::Value;

use super::scope::MachineScope;
use crate::document::{id_of, list};
use crate::instance_view;
use crate::observed::{Observation, ObservedResources};
use crate::profile::{identity_id, provider_id};

/// The observed state of an existing machine.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedMachine {
    /// Its provider ID.
    pub provider_id: String,
    /// Its provisioning state.
    pub vm_state: String,
    /// Its addresses; `None` while an interface of it is unknown.
    pub addresses: Option<Vec<NodeAddress>>,
    /// The state in which it does not run: stopped or deallocated, or on the way to it.
    pub stopped: Option<&'static str>,
    /// A declared identity that it does not have.
    pub missing_identity: Option<String>,
}

/// The observed state of the machine; `None` if it is absent, unknown, or still being created.
pub fn observed_machine(scope: &MachineScope<'_>, observed: &ObservedResources) -> Option<ObservedMachine> {
    let vm = scope.vm();
    let Observation::Present(held) = observed.get(&vm) else { return None };
    let state = held["properties"]["provisioningState"].as_str().unwrap_or_default();
    if scope.is_foreign(held) || (!scope.has_provider_id() && state != "Succeeded") {
        return None;
    }
    Some(ObservedMachine {
        provider_id: provider_id(held["id"].as_str().unwrap_or(vm.as_str())),
        vm_state: state.to_owned(),
        addresses: addresses(held, observed),
        stopped: instance_view::stopped(held),
        missing_identity: missing_identity(scope, held),
    })
}

fn addresses(held: &Value, observed: &ObservedResources) -> Option<Vec<NodeAddress>> {
    let mut addresses = vec![address("InternalDNS", held["name"].as_str().unwrap_or_default())];
    for interface in list(&held["properties"]["networkProfile"]["networkInterfaces"]) {
        let Some(id) = id_of(&interface["id"]) else { continue };
        let Observation::Present(interface) = observed.get(&id) else { return None };
        for configuration in list(&interface["properties"]["ipConfigurations"]) {
            let properties = &configuration["properties"];
            if let Some(private) = properties["privateIPAddress"].as_str() {
                addresses.push(address("InternalIP", private));
            }
            // A public IP that another writer attached may be unknown.
            if let Some(id) = id_of(&properties["publicIPAddress"]["id"])
                && let Observation::Present(public) = observed.get(&id)
                && let Some(public) = public["properties"]["ipAddress"].as_str()
            {
                addresses.push(address("ExternalIP", public));
            }
        }
    }
    Some(addresses)
}

fn address(kind: &str, address: &str) -> NodeAddress {
    NodeAddress { address: Some(address.to_owned()), kind: Some(kind.to_owned()), ..NodeAddress::default() }
}

/// Azure returns IDs of identities in another case than they were sent in.
fn missing_identity(scope: &MachineScope<'_>, held: &Value) -> Option<String> {
    let has = |id: &str| {
        let known = held["identity"]["userAssignedIdentities"].as_object();
        known.is_some_and(|known| known.keys().any(|key| key.eq_ignore_ascii_case(id)))
    };
    let declared = scope.spec.user_assigned_identities.iter().flatten();
    declared.map(identity_id).find(|id| !has(id)).map(str::to_owned)
}
