//! Where an instance of a uniform set belongs, and which addresses it holds.

use azure_types::ResourceId;
use serde_json::Value;

use crate::compute::machine::network_profile;
use azure_engine::document::name;
use azure_engine::provider::{AzureState, Record};

/// What one IP configuration of an instance is called in full.
pub(crate) fn ip_configuration_id(instance: &ResourceId, nic: &Value, ip: &Value) -> ResourceId {
    instance.child("networkInterfaces", name(nic)).child("ipConfigurations", name(ip))
}

/// The scale set of an instance.
pub(crate) fn set_of<'a>(azure: &'a AzureState, instance: &ResourceId) -> Option<&'a Record> {
    azure.store.get(&instance.parent()?)
}

/// The address that an instance holds for one IP configuration.
pub(crate) fn address<'a>(record: &'a Record, nic: &Value, ip: &Value) -> Option<&'a str> {
    record.hidden.get("addresses")?.get(network_profile::address_key(nic, ip))?.as_str()
}
