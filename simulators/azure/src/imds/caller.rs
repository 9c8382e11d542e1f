//! Which machine asks: by the path, by the source address, or the only one there is.

use std::collections::BTreeMap;
use std::net::IpAddr;

use azure_types::ResourceId;
use serde::{Deserialize, Serialize};

use crate::azure::Azure;
use crate::engine::document::{stored_reference, text};
use crate::engine::state::AzureState;
use crate::engine::store::Record;

/// Which machine is behind an address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MetadataAddresses {
    /// Machines by the address that their requests come from.
    pub addresses: BTreeMap<IpAddr, ResourceId>,
    /// The machine of all other addresses.
    pub default: Option<ResourceId>,
}

impl Azure {
    /// Which machine the metadata service takes a caller for.
    pub fn metadata_addresses(&self) -> MetadataAddresses {
        self.inner.metadata.read().clone()
    }

    /// Says which machine the metadata service takes a caller for. An address that is not named is that
    /// of the machine that holds it in a network, then the default one, then the only one there is.
    pub fn set_metadata_addresses(&self, addresses: MetadataAddresses) {
        *self.inner.metadata.write() = addresses;
    }
}

/// Whether a record is a machine.
pub(super) fn is_machine(record: &Record) -> bool {
    record.resource_type.name().rsplit('/').next() == Some("virtualMachines")
}

/// What a machine is called: a scale set instance by its set and number.
pub(super) fn machine_name(id: &ResourceId) -> String {
    match id.parent().filter(|parent| parent.namespace().is_some()) {
        Some(set) => format!("{}_{}", set.name(), id.name()),
        None => id.name().to_owned(),
    }
}

/// The names of some machines, for messages.
pub(super) fn machine_names(state: &AzureState) -> Vec<String> {
    const MAX_NAMES: usize = 10;
    let machines = state.store.all().filter(|record| is_machine(record));
    machines.map(|record| machine_name(&record.id)).take(MAX_NAMES).collect()
}

/// The machine that a path names, by its id, its name or its host name.
pub(super) fn by_name(state: &AzureState, asked: &str) -> Option<ResourceId> {
    let bare = asked.trim_matches('/');
    if let Ok(id) = ResourceId::parse(&format!("/{bare}")) {
        return state.store.get(&id).filter(|record| is_machine(record)).map(|record| record.id.clone());
    }
    let host = |record: &Record| {
        let own = text(&record.body, "properties/osProfile/computerName");
        let given = record.hidden.get("computerName").and_then(serde_json::Value::as_str);
        given.or(own).is_some_and(|host| host.eq_ignore_ascii_case(bare))
    };
    let machines = || state.store.all().filter(|record| is_machine(record));
    let named = machines().find(|record| machine_name(&record.id).eq_ignore_ascii_case(bare));
    named.or_else(|| machines().find(|record| host(record))).map(|record| record.id.clone())
}

/// The machine that an address is of.
pub(super) fn by_address(
    state: &AzureState,
    table: &MetadataAddresses,
    address: Option<IpAddr>,
) -> Option<ResourceId> {
    let exists =
        |id: &ResourceId| state.store.get(id).filter(|record| is_machine(record)).map(|r| r.id.clone());
    if let Some(named) = address.and_then(|address| table.addresses.get(&address)) {
        return exists(named);
    }
    if let Some(held) = address.and_then(|address| holder(state, address)) {
        return Some(held);
    }
    if let Some(default) = &table.default {
        return exists(default);
    }
    let mut machines = state.store.all().filter(|record| is_machine(record));
    let only = machines.next()?;
    machines.next().is_none().then(|| only.id.clone())
}

/// The machine whose network interface holds an address, if only one does.
fn holder(state: &AzureState, address: IpAddr) -> Option<ResourceId> {
    let mut holders = state.store.holders_of(address);
    let configuration = holders.next()?.clone();
    if holders.next().is_some() {
        return None;
    }
    let record = state.store.holder(&configuration)?;
    match is_machine(record) {
        true => Some(record.id.clone()),
        false => {
            let shown = state.document(&record.id)?;
            stored_reference(&shown, "properties/virtualMachine/id")
        }
    }
}
