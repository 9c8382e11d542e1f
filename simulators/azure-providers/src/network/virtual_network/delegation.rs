//! Delegations and service endpoints of subnets.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::network::shared::children::each_child;
use azure_engine::document::{Object, items, name, text};
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Result};
use azure_engine::types::member_table::Holds::{Anything, Derived, Text, Texts};
use azure_engine::types::member_table::Member;

/// Services whose endpoints serve the region alone; those of the others serve every region.
const REGIONAL: [&str; 2] = ["Microsoft.Sql", "Microsoft.Storage"];

pub(super) static MEMBERS: [Member; 3] = [
    Member::new("actions", Derived),
    Member::new("provisioningState", Derived),
    Member::new("serviceName", Text),
];

pub(super) static ENDPOINT: [Member; 4] = [
    Member::new("locations", Texts),
    Member::new("networkIdentifier", Anything),
    Member::new("provisioningState", Derived),
    Member::new("service", Text),
];

/// Checks the delegations of a subnet: at most one, to a service that it names.
pub(super) fn check(subnet: &ResourceId, properties: &mut Object) -> Result<()> {
    let mut count = 0;
    for (_, inner) in each_child(subnet, properties, "delegations") {
        let service = inner.get("serviceName").and_then(Value::as_str).unwrap_or_default();
        Code::azures(400, "InvalidServiceNameOnDelegation").details_when(
            service.split('/').count() != 2 || service.split('/').any(str::is_empty),
            format_args!(
                "Delegation of subnet {subnet} has the service name '{service}', which no service has."
            ),
        )?;
        // The service determines its allowed actions.
        inner.insert("actions".into(), json!(["Microsoft.Network/virtualNetworks/subnets/join/action"]));
        count += 1;
    }
    Code::ours(400, "SubnetCannotHaveMultipleDelegations")
        .details_when(count > 1, format_args!("Subnet {subnet} cannot have more than one delegation."))
}

/// Checks the service endpoints of a subnet and fills in the regions of each.
pub(super) fn locate_endpoints(subnet: &ResourceId, location: &str, properties: &mut Object) -> Result<()> {
    let endpoints = properties.get_mut("serviceEndpoints").and_then(Value::as_array_mut);
    let mut services: Vec<String> = Vec::new();
    for endpoint in endpoints.into_iter().flatten().filter_map(Value::as_object_mut) {
        let service = endpoint.get("service").and_then(Value::as_str).unwrap_or_default();
        Code::ours(400, "InvalidServiceEndpoint").details_when(
            !service.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("Microsoft.")),
            format_args!("Subnet {subnet} has a service endpoint for '{service}', which is no service."),
        )?;
        Code::ours(400, "DuplicateServiceEndpoint").details_when(
            services.iter().any(|known| known.eq_ignore_ascii_case(service)),
            format_args!("Subnet {subnet} has more than one service endpoint for {service}."),
        )?;
        services.push(service.to_owned());
        let regional = REGIONAL.iter().any(|known| known.eq_ignore_ascii_case(service));
        if endpoint.get("locations").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            endpoint.insert("locations".into(), json!([if regional { location } else { "*" }]));
        }
    }
    Ok(())
}

/// Delegations cannot change while the subnet is in use.
pub(crate) fn check_change(azure: &AzureState, subnet: &ResourceId, old: &Value, new: &Value) -> Result<()> {
    let (before, after) = (services(old), services(new));
    let user = azure.store.referrers(subnet).next();
    match user.filter(|_| before != after) {
        None => Ok(()),
        Some(user) => Err(Code::azures(400, "SubnetDelegationsCannotChangeWhenSubnetUsedByResource")
            .details(format_args!(
                "Delegations of subnet {subnet} cannot be changed from [{}] to [{}] because it is \
             being used by the resource {}.",
                before.join(", "),
                after.join(", "),
                user.from
            ))),
    }
}

/// Refuses machines in a subnet that is delegated to a service.
pub(crate) fn check_undelegated(azure: &AzureState, subnet: &ResourceId, id: &ResourceId) -> Result<()> {
    let holder = azure.store.holder(subnet).and_then(|network| azure.find_child(network, subnet));
    let services = holder.map(|(_, subnet)| services(subnet)).unwrap_or_default();
    if services.is_empty() {
        return Ok(());
    }
    Err(Code::azures(400, "SubnetHasDelegations").details(format_args!(
        "Subnet {subnet} cannot be used by {id} because it is delegated to {}.",
        services.join(", ")
    )))
}

/// Completes the delegations and endpoints of a subnet that is about to be shown.
pub(crate) fn present(subnet: &ResourceId, etag: &str, state: &str, properties: &mut Object) {
    for one in properties.get_mut("delegations").and_then(Value::as_array_mut).into_iter().flatten() {
        let id = subnet.child("delegations", name(one));
        if let Some(document) = one.as_object_mut() {
            if let Some(inner) = document.get_mut("properties").and_then(Value::as_object_mut) {
                inner.insert("provisioningState".into(), state.into());
            }
            document.insert("id".into(), id.as_str().into());
            document.insert("etag".into(), etag.into());
            document.insert("type".into(), "Microsoft.Network/virtualNetworks/subnets/delegations".into());
        }
    }
    for one in properties.get_mut("serviceEndpoints").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(endpoint) = one.as_object_mut() {
            endpoint.insert("provisioningState".into(), state.into());
        }
    }
}

fn services(subnet: &Value) -> Vec<&str> {
    let all = items(subnet, "properties/delegations").iter();
    all.filter_map(|one| text(one, "properties/serviceName")).collect()
}
