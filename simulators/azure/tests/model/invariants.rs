//! What must hold of every Azure at every moment.

use std::collections::BTreeMap;
use std::net::IpAddr;

use azure_simulator::Azure;
use azure_types::ResourceId;
use serde_json::Value;

use crate::common::SUBSCRIPTION;

/// Checks that no reference dangles, that no address has two owners, and that all resources lie in an existing group.
pub fn check(azure: &Azure) {
    let mut owners = Owners::default();
    for document in azure.documents() {
        let id = id_of(&document);
        if let Some(group) = id.group_name() {
            let group = ResourceId::group(id.subscription_id(), group);
            assert!(azure.document(&group).is_some(), "{id} lies in no group");
        }
        // Deleted vaults are shown in a location, which is no resource.
        let nested = |parent: &ResourceId| {
            parent.namespace().is_some() && !parent.resource_type().ends_with("/locations")
        };
        if let Some(parent) = id.parent().filter(nested) {
            assert!(azure.document(&parent).is_some(), "{id} has no parent");
        }
        ids_in(azure, &document, &id);
        if let Some(address) = document["properties"].get("ipAddress") {
            owners.own("public", address, &document["id"]);
        }
    }
    for kind in [
        "Microsoft.Network/networkInterfaces",
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces",
    ] {
        for nic in azure.documents_of_type(kind) {
            let configurations =
                nic["properties"]["ipConfigurations"].as_array().cloned().unwrap_or_default();
            let primaries = configurations.iter().filter(|one| one["properties"]["primary"] == true).count();
            assert!(primaries == 1, "{} has {primaries} primary configurations", nic["id"]);
            for configuration in configurations {
                address(azure, &mut owners, &configuration);
            }
        }
    }
    for frontend in azure.documents_of_type("Microsoft.Network/loadBalancers/frontendIPConfigurations") {
        address(azure, &mut owners, &frontend);
    }
    membership(azure);
    disks(azure);
}

fn id_of(document: &Value) -> ResourceId {
    ResourceId::parse(document["id"].as_str().unwrap()).unwrap()
}

#[derive(Default)]
struct Owners(BTreeMap<(String, String), String>);

impl Owners {
    fn own(&mut self, space: &str, address: &Value, owner: &Value) {
        let (address, owner) = (address.as_str().unwrap().to_owned(), owner.as_str().unwrap().to_lowercase());
        if let Some(other) = self.0.insert((space.to_lowercase(), address.clone()), owner.clone()) {
            assert_eq!(other, owner, "{address} has two owners");
        }
    }
}

/// The address of an IP configuration or frontend is its own, lies in its subnet, and the subnet knows.
fn address(azure: &Azure, owners: &mut Owners, holder: &Value) {
    let Some(address) = holder["properties"].get("privateIPAddress") else { return };
    let subnet = holder["properties"]["subnet"]["id"].as_str().unwrap();
    owners.own(subnet, address, &holder["id"]);
    let shown = azure.document(&ResourceId::parse(subnet).unwrap()).unwrap();
    let users = shown["properties"]["ipConfigurations"].as_array().cloned().unwrap_or_default();
    assert!(
        users.iter().any(|user| same(&user["id"], &holder["id"])),
        "{subnet} does not know {}",
        holder["id"]
    );
    let prefix = shown["properties"]["addressPrefix"].as_str();
    let prefix: ipnet::IpNet =
        prefix.or(shown["properties"]["addressPrefixes"][0].as_str()).unwrap().parse().unwrap();
    assert!(
        prefix.contains(&address.as_str().unwrap().parse::<IpAddr>().unwrap()),
        "{address} is outside {subnet}"
    );
}

/// Both sides of a pool show the same members.
fn membership(azure: &Azure) {
    for pool in azure.documents_of_type("Microsoft.Network/loadBalancers/backendAddressPools") {
        for member in pool["properties"]["backendIPConfigurations"].as_array().into_iter().flatten() {
            let id = ResourceId::parse(member["id"].as_str().unwrap()).unwrap();
            let joined = &azure.document(&id).unwrap()["properties"]["loadBalancerBackendAddressPools"];
            let joined = joined.as_array().cloned().unwrap_or_default();
            assert!(joined.iter().any(|other| same(&other["id"], &pool["id"])), "{id} is in {}", pool["id"]);
        }
    }
}

/// A disk that says who holds it is held by it, and the other way round; disks leave only machines that change.
fn disks(azure: &Azure) {
    for machine in azure.documents_of_type("Microsoft.Compute/virtualMachines") {
        let held =
            machine["properties"]["storageProfile"]["dataDisks"].as_array().cloned().unwrap_or_default();
        let stays = |disk: &&Value| disk["toBeDetached"] != true;
        let mut luns: Vec<i64> = held.iter().filter(stays).filter_map(|disk| disk["lun"].as_i64()).collect();
        let count = luns.len();
        luns.sort_unstable();
        luns.dedup();
        assert_eq!(luns.len(), count, "{} has two disks at one LUN", machine["id"]);
        for disk in &held {
            let Some(id) = disk["managedDisk"]["id"].as_str() else { continue };
            let document = azure.document(&ResourceId::parse(id).unwrap()).unwrap();
            let mut holders = vec![document["managedBy"].clone()];
            holders.extend(document["managedByExtended"].as_array().into_iter().flatten().cloned());
            let with = holders.iter().any(|holder| same(holder, &machine["id"]));
            // While a machine changes, it lists disks that it does not have yet.
            let comes = machine["properties"]["provisioningState"] == "Updating";
            assert!(with || comes, "{id} is not with {}", machine["id"]);
        }
        let leaves = held.iter().any(|disk| disk["toBeDetached"] == true);
        assert!(!leaves || machine["properties"]["provisioningState"] != "Succeeded", "{machine}");
    }
    for disk in azure.documents_of_type("Microsoft.Compute/disks") {
        let attached =
            disk["properties"]["diskState"] == "Attached" || disk["properties"]["diskState"] == "Reserved";
        assert_eq!(attached, disk.get("managedBy").is_some(), "{disk}");
    }
}

fn same(one: &Value, other: &Value) -> bool {
    match (one.as_str(), other.as_str()) {
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
        _ => false,
    }
}

/// Every id that a document shows is there to be read.
fn ids_in(azure: &Azure, value: &Value, whose: &ResourceId) {
    match value {
        Value::Object(members) => {
            // The system disks of scale set instances are named, but are no resources of this Azure; rules of firewalls
            // outlive their subnets, and peerings the network on the other side.
            let kept = |member: &str| !matches!(member, "osDisk" | "networkAcls" | "remoteVirtualNetwork");
            for (member, value) in members.iter().filter(|(member, _)| kept(member)) {
                let id = value.as_str().filter(|_| member == "id").map(ResourceId::parse);
                match id {
                    // The configurations of a bastion host have ids that its address shows, and no documents of their own;
                    // nor have the delegations of subnets.
                    Some(Ok(id))
                        if id.resource_type().ends_with("/bastionHosts/ipConfigurations")
                            || id.resource_type().ends_with("/subnets/delegations") => {}
                    // Images of nodes lie in a subscription of Azure's own.
                    Some(Ok(id)) if id.subscription_id() != SUBSCRIPTION => {}
                    Some(Ok(id)) => assert!(azure.document(&id).is_some(), "{id} dangles from {whose}"),
                    _ => ids_in(azure, value, whose),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| ids_in(azure, item, whose)),
        _ => {}
    }
}
