//! Peerings of virtual networks, each written on one side and connected when both sides have one.

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::{Value, json};

use crate::network::shared::children::{each_child, old_child};
use azure_engine::document::{Object, at, items, name, stored_reference};
use azure_engine::provider::{AzureState, Proposal, Record};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::store::reference::Role;
use azure_engine::types::member_table::Holds::{Anything, Derived, Flag, Uses};
use azure_engine::types::member_table::Member;

pub(crate) const COLLECTION: &str = "virtualNetworkPeerings";

/// Hidden member of a network: the peerings of it that have been connected once.
const CONNECTED: &str = "connectedPeerings";

pub(super) static MEMBERS: [Member; 22] = [
    Member::new("allowForwardedTraffic", Flag).or_flag(false),
    Member::new("allowGatewayTransit", Flag).or_flag(false),
    Member::new("allowVirtualNetworkAccess", Flag).or_flag(true),
    Member::new("doNotVerifyRemoteGateways", Flag).or_flag(false),
    Member::new("enableOnlyIPv6Peering", Flag),
    Member::new("localAddressSpace", Derived),
    Member::new("localSubnetNames", Anything),
    Member::new("localVirtualNetworkAddressSpace", Derived),
    Member::new("peerCompleteVnets", Flag).or_flag(true),
    Member::new("peeringState", Derived),
    Member::new("peeringSyncLevel", Derived),
    Member::new("provisioningState", Derived),
    // The other side's address space is read again with every write.
    Member::new("remoteAddressSpace", Derived),
    Member::new("remoteBgpCommunities", Derived),
    Member::new("remoteGateways", Derived),
    Member::new("remoteSubnetNames", Anything),
    // The other network may be in another region, and may be deleted: this reference does not hold it.
    Member::new("remoteVirtualNetwork", Uses("virtualNetworks")).role(Role::Names).required(),
    Member::new("remoteVirtualNetworkAddressSpace", Derived),
    Member::new("remoteVirtualNetworkEncryption", Derived),
    Member::new("resourceGuid", Derived),
    Member::new("routeServiceVips", Anything),
    Member::new("useRemoteGateways", Flag).or_flag(false),
];

/// Checks the peerings of a network whose address space will be `space`.
pub(super) fn check_all(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    space: &[IpNet],
    properties: &mut Object,
) -> Result<()> {
    let network = proposal.id;
    let mut remotes: Vec<ResourceId> = Vec::new();
    for (id, properties) in each_child(network, properties, COLLECTION) {
        let remote = properties.get("remoteVirtualNetwork").and_then(|remote| stored_reference(remote, "id"));
        let Some(remote) = remote else { continue };
        Code::azures(400, "AnotherPeeringAlreadyReferencesRemoteVnet").details_when(
            remotes.contains(&remote),
            format_args!(
                "Peering {} cannot be created: another peering of {network} already references remote virtual network \
                 {remote}.",
                id.name()
            ),
        )?;
        check(azure, proposal, space, &id, &remote, properties)?;
        remotes.push(remote);
    }
    Ok(())
}

fn check(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    space: &[IpNet],
    id: &ResourceId,
    remote: &ResourceId,
    properties: &mut Object,
) -> Result<()> {
    let network = proposal.id;
    Code::ours(400, "CannotPeerVirtualNetworkWithItself").details_when(
        remote == network,
        format_args!("Peering {id} cannot reference its own virtual network."),
    )?;
    let old = old_child(proposal.old, id).filter(|old| remote_of(old).as_ref() == Some(remote));
    match (azure.store.get(remote), old) {
        (Some(other), old) => {
            if old.is_none() {
                check_other_side(id, network, other)?;
            }
            let theirs = space_of(other);
            check_overlap(id, network, space, other, &theirs)?;
            properties.insert("remoteAddressSpace".into(), shown(&theirs));
        }
        // A peering outlives the other network.
        (None, Some(old)) => {
            if let Some(heard) = at(old, "properties/remoteAddressSpace") {
                properties.insert("remoteAddressSpace".into(), heard.clone());
            }
        }
        (None, None) => return Err(Refusal::invalid_reference(remote, id)),
    }
    Code::azures(400, "RemoteVnetHasNoGateways").details_when(
        properties.get("useRemoteGateways") == Some(&Value::Bool(true)),
        format_args!(
            "Peering {id} cannot have UseRemoteGateways flag set to true because remote virtual network {remote} \
             referenced by the peering does not have any gateways."
        ),
    )
}

/// A side whose other side was deleted must be recreated before it can be connected again.
fn check_other_side(id: &ResourceId, network: &ResourceId, other: &Record) -> Result<()> {
    let Some(back) = back(other, network).filter(|back| was_connected(other, name(back))) else {
        return Ok(());
    };
    Err(Code::azures(400, "RemotePeeringIsDisconnected").details(format_args!(
            "Cannot create or update peering {id} because remote peering {} referencing parent virtual network {network} \
             is in Disconnected state. Update or re-create the remote peering to get it back to Initiated state.",
            other.id.child(COLLECTION, name(back))
        )))
}

fn check_overlap(
    id: &ResourceId,
    network: &ResourceId,
    space: &[IpNet],
    other: &Record,
    theirs: &[IpNet],
) -> Result<()> {
    let overlapping: Vec<String> = space
        .iter()
        .filter(|ours| theirs.iter().any(|their| ours.contains(their) || their.contains(*ours)))
        .map(ToString::to_string)
        .collect();
    if overlapping.is_empty() {
        return Ok(());
    }
    Err(Code::azures(400, "VnetAddressSpacesOverlap").details(format_args!(
            "Cannot create or update peering {id}. Virtual networks {network} and {} cannot be peered because their \
             address spaces overlap. Overlapping address prefixes: {}",
            other.id,
            overlapping.join(", ")
        )))
}

/// Notes on both sides which peerings are connected now, so that a side that loses its other one knows that it was
/// connected.
pub(crate) fn note_connections(azure: &mut AzureState, network: &ResourceId) {
    let Some(record) = azure.store.get(network) else { return };
    let mut notes: Vec<(ResourceId, Vec<String>)> = Vec::new();
    let mut here: Vec<String> = Vec::new();
    for peering in items(&record.body, "properties/virtualNetworkPeerings") {
        let other = remote_of(peering).and_then(|remote| azure.store.get(&remote));
        let there = other.and_then(|other| Some((other, back(other, network)?)));
        let key = name(peering).to_ascii_lowercase();
        if let Some((other, back)) = there {
            let mut known = connected(other);
            known.push(name(back).to_ascii_lowercase());
            notes.push((other.id.clone(), known));
            here.push(key);
        } else if was_connected(record, name(peering)) {
            here.push(key);
        }
    }
    notes.push((record.id.clone(), here));
    for (id, mut names) in notes {
        names.sort();
        names.dedup();
        if azure.store.get(&id).is_some_and(|record| connected(record) != names)
            && let Some(record) = azure.store.get_mut(&id)
        {
            record.hidden.insert(CONNECTED.into(), names.into());
        }
    }
}

/// Adds the members that come from the other side.
pub(crate) fn present(azure: &AzureState, record: &Record, id: &ResourceId, properties: &mut Object) {
    let guid = azure.seed.guid("peering", id.as_str(), record.incarnation);
    properties.insert("resourceGuid".into(), guid.into());
    let remote = properties.get("remoteVirtualNetwork").and_then(|remote| stored_reference(remote, "id"));
    let other = remote.and_then(|remote| azure.store.get(&remote));
    let mutual = other.is_some_and(|other| back(other, &record.id).is_some());
    let state = match (mutual, was_connected(record, id.name())) {
        (true, _) => "Connected",
        (false, true) => "Disconnected",
        (false, false) => "Initiated",
    };
    let now = other.map(|other| shown(&space_of(other)));
    let level = match (&now, properties.get("remoteAddressSpace")) {
        (Some(now), Some(heard)) if mutual && now == heard => "FullyInSync",
        (Some(_), _) if mutual => "LocalNotInSync",
        _ => "RemoteNotInSync",
    };
    properties.insert("peeringState".into(), state.into());
    properties.insert("peeringSyncLevel".into(), level.into());
    if let Some(space) = now.or_else(|| properties.get("remoteAddressSpace").cloned()) {
        properties.insert("remoteVirtualNetworkAddressSpace".into(), space);
    }
}

fn remote_of(peering: &Value) -> Option<ResourceId> {
    stored_reference(peering, "properties/remoteVirtualNetwork/id")
}

/// The peering of a network that leads to another one.
fn back<'a>(network: &'a Record, to: &ResourceId) -> Option<&'a Value> {
    items(&network.body, "properties/virtualNetworkPeerings")
        .iter()
        .find(|one| remote_of(one).as_ref() == Some(to))
}

fn connected(network: &Record) -> Vec<String> {
    let names = network.hidden.get(CONNECTED).and_then(Value::as_array).into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn was_connected(network: &Record, peering: &str) -> bool {
    connected(network).iter().any(|known| known.eq_ignore_ascii_case(peering))
}

fn space_of(network: &Record) -> Vec<IpNet> {
    let prefixes = items(&network.body, "properties/addressSpace/addressPrefixes").iter();
    prefixes.filter_map(|prefix| prefix.as_str()?.parse().ok()).collect()
}

fn shown(prefixes: &[IpNet]) -> Value {
    json!({ "addressPrefixes": prefixes.iter().map(ToString::to_string).collect::<Vec<_>>() })
}
