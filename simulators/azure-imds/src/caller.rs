//! The calling machine: found by the path, by the source address, or the only one.

use std::net::IpAddr;

use azure_types::ResourceId;

use azure_engine::document::{stored_reference, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::settings::options::MetadataAddresses;
use azure_providers::compute::machine::{is_machine, machine_name};

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
