//! The facts for a node, derived from the documents.

use crate::document::{Compute, FamilyAddresses, Frontend, Instance, LoadBalancer, Network};
use crate::error::Error;

/// The tag that names the group of machines with a fast network between them.
const INTERCONNECT_TAG: &str = "Platform_Interconnect_Group";

/// The type of a node's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// The node's name.
    Hostname,
    /// A private address.
    InternalIp,
    /// A public address.
    ExternalIp,
}

impl AddressKind {
    /// The word in a Node's status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hostname => "Hostname",
            Self::InternalIp => "InternalIP",
            Self::ExternalIp => "ExternalIP",
        }
    }
}

/// An address of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Its type.
    pub kind: AddressKind,
    /// The address or name.
    pub address: String,
}

/// The facts about a machine that its node needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineFacts {
    /// The machine's resource id, with subscription and resource group in lower case.
    pub resource_id: String,
    /// Its size.
    pub size: String,
    /// `<region>-<number>`, or the fault domain's number outside of zones, which may be empty.
    pub zone: String,
    /// The region in lower case.
    pub region: String,
    /// The node's name, then the first address of each family and the public one that belongs to it.
    pub addresses: Vec<Address>,
    /// The first addresses of the machine's other interfaces, and their public ones. They are the node's if its kubelet
    /// asks for one of them (`--node-ip`).
    pub others: Vec<Address>,
    /// The part of the fault domain; empty if Azure names none.
    pub sub_fault_domain: String,
    /// The group of machines with a fast network between them; empty if it is in none.
    pub interconnect_group: String,
}

impl MachineFacts {
    /// Derives the facts from the documents.
    ///
    /// # Errors
    /// A required fact is missing.
    pub(crate) fn read(
        node: &str,
        instance: &Instance,
        load_balancer: Option<&LoadBalancer>,
    ) -> Result<Self, Error> {
        let compute = instance.compute.as_ref().ok_or(Error::NoCompute)?;
        let network = instance.network.as_ref().ok_or(Error::NoNetwork)?;
        let resource_id = resource_id(compute)?;
        let addresses = addresses(node, network, load_balancer)?;
        if compute.vm_size.is_empty() {
            return Err(Error::NoSize);
        }
        let (zone, region) = zone(compute)?;
        let group = compute.tags_list.iter().find(|tag| tag.name == INTERCONNECT_TAG);
        Ok(Self {
            resource_id,
            size: compute.vm_size.clone(),
            zone,
            region,
            addresses,
            others: others(network, load_balancer),
            sub_fault_domain: compute.platform_sub_fault_domain.clone(),
            interconnect_group: group.map(|tag| tag.value.clone()).unwrap_or_default(),
        })
    }
}

/// A data disk of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedDisk {
    /// Its LUN, if the service names one.
    pub lun: Option<u32>,
    /// The resource id of the disk, as Azure spells it; empty for a disk that is no resource.
    pub id: String,
}

/// The facts about a machine that a driver of volumes needs; unlike [`MachineFacts`], without its network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageFacts {
    /// Its name; in a uniform scale set `<set>_<number>`.
    pub name: String,
    /// Its size; empty if the service names none.
    pub size: String,
    /// `<region>-<number>`, or the fault domain's number outside of zones, which may be empty.
    pub zone: String,
    /// The region in lower case.
    pub region: String,
    /// Its data disks, as the service knows them: some seconds behind the attach or detach of one.
    pub data_disks: Vec<AttachedDisk>,
}

impl StorageFacts {
    /// Derives the facts from the document.
    ///
    /// # Errors
    /// A required fact is missing.
    pub(crate) fn read(instance: &Instance) -> Result<Self, Error> {
        let compute = instance.compute.as_ref().ok_or(Error::NoCompute)?;
        let (zone, region) = zone(compute)?;
        let disks = compute.storage_profile.data_disks.iter();
        let data_disks =
            disks.map(|disk| AttachedDisk { lun: disk.lun.parse().ok(), id: disk.managed_disk.id.clone() });
        Ok(Self {
            name: compute.name.clone(),
            size: compute.vm_size.clone(),
            zone,
            region,
            data_disks: data_disks.collect(),
        })
    }
}

/// The machine's ID. Azure keeps the spelling of subscription and group from the creation; nodes have them in lower
/// case, so that IDs can be compared as texts. Only these two segments are lowered: a group may have the name of
/// another part of the ID, such as `Compute`.
fn resource_id(compute: &Compute) -> Result<String, Error> {
    if compute.resource_id.is_empty() {
        return Err(Error::NoResourceId);
    }
    let mut is_name = false;
    let segments: Vec<String> = (compute.resource_id.split('/'))
        .map(|segment| {
            let is_lowered = std::mem::replace(&mut is_name, is_word_before_a_name(segment));
            if is_lowered { segment.to_lowercase() } else { segment.to_owned() }
        })
        .collect();
    Ok(segments.join("/"))
}

/// Whether the name of a subscription or of a group follows.
fn is_word_before_a_name(segment: &str) -> bool {
    ["subscriptions", "resourceGroups"].iter().any(|word| segment.eq_ignore_ascii_case(word))
}

fn addresses(
    node: &str,
    network: &Network,
    load_balancer: Option<&LoadBalancer>,
) -> Result<Vec<Address>, Error> {
    let interface = network.interface.first().ok_or(Error::NoInterface)?;
    let mut all = vec![Address { kind: AddressKind::Hostname, address: node.to_owned() }];
    let frontends = load_balancer.map(|balancer| balancer.loadbalancer.public_ip_addresses.as_slice());
    for family in [&interface.ipv4, &interface.ipv6] {
        all.extend(first_of(family, frontends.unwrap_or_default()));
    }
    match all.len() {
        1 => Err(Error::NoAddress),
        _ => Ok(all),
    }
}

fn others(network: &Network, load_balancer: Option<&LoadBalancer>) -> Vec<Address> {
    let frontends = load_balancer.map(|balancer| balancer.loadbalancer.public_ip_addresses.as_slice());
    let families = network.interface.iter().skip(1).flat_map(|interface| [&interface.ipv4, &interface.ipv6]);
    families.flat_map(|family| first_of(family, frontends.unwrap_or_default())).collect()
}

/// The first address of a family, and its public one. The others belong to pods.
fn first_of(family: &FamilyAddresses, frontends: &[Frontend]) -> Vec<Address> {
    let Some(pair) = family.ip_address.first() else { return Vec::new() };
    let bare = |text: &str| text.trim_start_matches('[').trim_end_matches(']').to_owned();
    let of_balancer = || {
        let frontend = frontends.iter().find(|one| bare(&one.private_ip_address) == pair.private_ip_address);
        frontend.map(|one| bare(&one.frontend_ip_address)).unwrap_or_default()
    };
    let public = match pair.public_ip_address.as_str() {
        "" => of_balancer(),
        public => public.to_owned(),
    };
    [(AddressKind::InternalIp, pair.private_ip_address.clone()), (AddressKind::ExternalIp, public)]
        .into_iter()
        .filter(|(_, address)| !address.is_empty())
        .map(|(kind, address)| Address { kind, address })
        .collect()
}

/// Zone and region.
fn zone(compute: &Compute) -> Result<(String, String), Error> {
    let region = compute.location.to_lowercase();
    if region.is_empty() {
        return Err(Error::NoRegion);
    }
    let zone = match compute.zone.as_str() {
        "" => compute.platform_fault_domain.clone(),
        zone => {
            let number: u32 = zone
                .parse()
                .map_err(|reason| Error::Zone { zone: zone.to_owned(), reason: format!("{reason}") })?;
            format!("{region}-{number}")
        }
    };
    Ok((zone, region))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn compute(document: Value) -> Compute {
        serde_json::from_value(document).unwrap()
    }

    /// NODE-045
    #[test]
    fn node_045_subscription_and_group_are_in_lower_case() {
        let id = |id: &str| {
            resource_id(&compute(
                json!({"subscriptionId": "SUB", "resourceGroupName": "RG", "resourceId": id}),
            ))
        };
        assert_eq!(
            id("/subscriptions/SUB/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/vm")
                .unwrap(),
            "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm"
        );
        let set = "/subscriptions/SUB/resourceGroups/RG/providers/Microsoft.Compute/virtualMachineScaleSets/Set-RG/x";
        assert_eq!(
            id(set).unwrap(),
            "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/Set-RG/x"
        );
        assert_eq!(resource_id(&compute(json!({"resourceId": "/A/b"}))).unwrap(), "/A/b");
    }

    /// F6
    #[test]
    fn a_group_that_is_named_like_a_part_of_the_id_lowers_no_other_part() {
        for group in ["Compute", "Machine", "Microsoft", "Providers"] {
            let rest = "providers/Microsoft.Compute/virtualMachines/Machine-1";
            let id = resource_id(&compute(json!({
                "subscriptionId": "SUB", "resourceGroupName": group,
                "resourceId": format!("/subscriptions/SUB/resourceGroups/{group}/{rest}"),
            })));
            assert_eq!(
                id.unwrap(),
                format!("/subscriptions/sub/resourceGroups/{}/{rest}", group.to_lowercase())
            );
        }
    }

    /// NODE-047
    #[test]
    fn node_047_zones_and_fault_domains() {
        for (location, zone_number, expected) in [
            ("eastus", "1", ("eastus-1", "eastus")),
            ("eastus", "", ("99", "eastus")),
            ("EastUS", "1", ("eastus-1", "eastus")),
        ] {
            let machine = compute(json!({
                "location": location, "zone": zone_number, "platformFaultDomain": "99"}));
            let (zone, region) = zone(&machine).unwrap();
            assert_eq!((zone.as_str(), region.as_str()), expected, "{location} {zone_number}");
        }
        let nowhere = compute(json!({"location": "eastus", "zone": null}));
        assert_eq!(zone(&nowhere).unwrap(), (String::new(), "eastus".to_owned()));
    }

    /// Disks come and go, and a machine need not have a network that is described.
    #[test]
    fn a_machine_has_data_disks() {
        let read = |compute: Value| {
            StorageFacts::read(&serde_json::from_value(json!({ "compute": compute })).unwrap())
        };
        let disks = json!({ "dataDisks": [
            { "lun": "3", "managedDisk": { "id": "/disks/a" } },
            { "lun": "", "managedDisk": null },
        ] });
        let facts = read(json!({
            "name": "workers_0", "location": "EastUS", "zone": "1", "vmSize": "Standard_D2s_v5", "storageProfile": disks,
        }));
        let facts = facts.unwrap();
        let expected = [(Some(3), "/disks/a".to_owned()), (None, String::new())];
        let found: Vec<_> = facts.data_disks.into_iter().map(|disk| (disk.lun, disk.id)).collect();
        assert_eq!(found, expected);
        assert_eq!((facts.name.as_str(), facts.zone.as_str()), ("workers_0", "eastus-1"));
        assert_eq!((facts.size.as_str(), facts.region.as_str()), ("Standard_D2s_v5", "eastus"));
        assert_eq!(read(json!({ "location": "eastus" })).unwrap().data_disks, []);
        assert_eq!(read(json!({})), Err(Error::NoRegion));
    }
}
