//! Reduces documents that are large, or of which there are thousands, to what is used.
//!
//! Machines are only read: a write of an instance contains the parts that it changes, and Azure keeps the rest. So only
//! the parts in use are kept. Load balancers are kept completely, with each id stored once.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use azure_types::{
    HardwareProfile, InstanceView, InstanceViewStatus, InterfaceConfigurations, InterfaceIpConfiguration,
    InterfaceIpConfigurationProperties, LoadBalancer, NetworkInterface, NetworkInterfaceProperties,
    NetworkInterfaceReference, NetworkInterfaceReferenceProperties, NetworkProfile, OsProfile,
    PublicIpAddress, ResourceId, Rest, ScaleSetInstance, ScaleSetInstanceProperties, SharedIds, Sku,
    SubResource, VirtualMachine, VirtualMachineProperties,
};
use parking_lot::Mutex;
use serde::Serialize;

/// Values that many documents share, each stored once.
#[derive(Debug, Default)]
pub(crate) struct Recurring {
    interfaces: Pool<InterfaceConfigurations>,
    views: Pool<InstanceView>,
    sizes: Pool<Sku>,
    hardware: Pool<HardwareProfile>,
    zones: Pool<[String]>,
    locations: Pool<str>,
    ids: Mutex<SharedIds>,
}

impl Recurring {
    /// A load balancer whose parts share ids with each other and with those of other load balancers.
    pub(super) fn load_balancer(&self, mut document: LoadBalancer) -> LoadBalancer {
        let mut ids = self.ids.lock();
        ids.forget_unused();
        ids.share_all(&mut document);
        document
    }
}

/// Maximum number of different values at a time. A scale set's machines are created from one model, and differ while
/// they change; values that are different for each machine are not worth searching.
const MAX_DIFFERENT: usize = 64;

/// By their text: a different spelling is a different value.
#[derive(Debug)]
struct Pool<T: ?Sized>(Mutex<HashMap<String, Weak<T>>>);

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Serialize + ?Sized> Pool<T> {
    /// The value, or an equal one that is stored.
    fn share(&self, value: Arc<T>) -> Arc<T> {
        // A value that cannot be serialised is kept as it is.
        let Ok(text) = serde_json::to_string(&value) else { return value };
        let mut known = self.0.lock();
        if let Some(same) = known.get(&text).and_then(Weak::upgrade) {
            return same;
        }
        if known.len() >= MAX_DIFFERENT {
            known.retain(|_, one| one.strong_count() > 0);
        }
        if known.len() < MAX_DIFFERENT {
            known.insert(text, Arc::downgrade(&value));
        }
        value
    }
}

/// Reduces an instance of a uniform scale set to what describes its node, and what a write of it contains.
pub(super) fn instance(machine: ScaleSetInstance, recurring: &Recurring) -> ScaleSetInstance {
    let ScaleSetInstance { id, etag, location, instance_id, sku, zones, properties, .. } = machine;
    ScaleSetInstance {
        id,
        etag,
        location: location.map(|location| recurring.locations.share(location)),
        instance_id,
        sku: sku.map(|sku| recurring.sizes.share(Arc::new(Sku { name: sku.name.clone(), ..Sku::default() }))),
        zones: zones.map(|zones| recurring.zones.share(zones)),
        properties: properties.map(|all| ScaleSetInstanceProperties {
            provisioning_state: all.provisioning_state,
            latest_model_applied: None,
            os_profile: all.os_profile.map(os_profile),
            vm_id: all.vm_id,
            // A write sends it unchanged.
            hardware_profile: all.hardware_profile.map(|hardware| recurring.hardware.share(hardware)),
            network_profile: all.network_profile.map(network_profile),
            network_profile_configuration: all
                .network_profile_configuration
                .map(|interfaces| recurring.interfaces.share(interfaces)),
            instance_view: all
                .instance_view
                .map(|all| recurring.views.share(Arc::new(view(Arc::unwrap_or_clone(all))))),
            rest: Rest::new(),
        }),
        ..ScaleSetInstance::default()
    }
}

/// Reduces a virtual machine: it is never written, only its interfaces are.
pub(super) fn virtual_machine(machine: VirtualMachine) -> VirtualMachine {
    let VirtualMachine { id, name, location, zones, properties, .. } = machine;
    VirtualMachine {
        id,
        name,
        location,
        zones: zones.map(tight),
        properties: properties.map(|all| VirtualMachineProperties {
            provisioning_state: all.provisioning_state,
            os_profile: all.os_profile.map(os_profile),
            vm_id: all.vm_id,
            hardware_profile: all
                .hardware_profile
                .map(|all| HardwareProfile { vm_size: all.vm_size, rest: Rest::new() }),
            network_profile: all.network_profile.map(network_profile),
            instance_view: all.instance_view.map(view),
            availability_set: all.availability_set.map(reference),
            virtual_machine_scale_set: all.virtual_machine_scale_set.map(reference),
            rest: Rest::new(),
        }),
        ..VirtualMachine::default()
    }
}

/// Reduces a public IP of any group to what shows whose it is.
pub(super) fn tagged(address: PublicIpAddress) -> PublicIpAddress {
    let PublicIpAddress { id, name, tags, .. } = address;
    PublicIpAddress { id, name, tags, ..PublicIpAddress::default() }
}

/// Frees the spare capacity of a list that grew while it was read.
fn tight<T>(mut list: Vec<T>) -> Vec<T> {
    list.shrink_to_fit();
    list
}

fn reference(all: SubResource) -> SubResource {
    SubResource { id: all.id, rest: Rest::new() }
}

fn os_profile(all: OsProfile) -> OsProfile {
    OsProfile { computer_name: all.computer_name, ..OsProfile::default() }
}

fn network_profile(all: NetworkProfile) -> NetworkProfile {
    let interface = |all: NetworkInterfaceReference| NetworkInterfaceReference {
        id: all.id,
        properties: all
            .properties
            .map(|all| NetworkInterfaceReferenceProperties { primary: all.primary, rest: Rest::new() }),
        rest: Rest::new(),
    };
    let interfaces = all.network_interfaces;
    let interfaces = interfaces.map(|interfaces| tight(interfaces.into_iter().map(interface).collect()));
    NetworkProfile { network_interfaces: interfaces, rest: Rest::new() }
}

fn view(all: InstanceView) -> InstanceView {
    let status = |all: InstanceViewStatus| InstanceViewStatus { code: all.code, rest: Rest::new() };
    InstanceView {
        statuses: all.statuses.map(|statuses| tight(statuses.into_iter().map(status).collect())),
        platform_fault_domain: all.platform_fault_domain,
        rest: Rest::new(),
    }
}

/// A network interface of an instance of a uniform scale set, reduced to what describes its node. It is written with
/// the instance.
#[derive(Debug)]
pub(crate) struct InstanceInterface {
    name: Box<str>,
    is_primary: Option<bool>,
    addresses: Box<[InstanceAddress]>,
}

#[derive(Debug)]
struct InstanceAddress {
    is_primary: Option<bool>,
    private: Option<Box<str>>,
    public: Option<ResourceId>,
}

impl InstanceInterface {
    pub(super) fn of(document: &NetworkInterface) -> Self {
        let properties = document.properties.as_ref();
        let configurations = properties.and_then(|all| all.ip_configurations.as_deref()).unwrap_or_default();
        let address = |all: &InterfaceIpConfigurationProperties| InstanceAddress {
            is_primary: all.primary,
            private: all.private_ip_address.as_deref().map(Box::from),
            public: all.public_ip_address.as_ref().and_then(|public| public.id.clone()),
        };
        Self {
            name: document.id.as_ref().map(Self::name_of).unwrap_or_default().into(),
            is_primary: properties.and_then(|all| all.primary),
            addresses: configurations.iter().filter_map(|one| one.properties.as_ref()).map(address).collect(),
        }
    }

    /// The name of an interface within its scale set: interface names are the same in each instance.
    pub(crate) fn name_of(id: &ResourceId) -> String {
        let pairs = id.type_and_name_pairs();
        let names: Vec<&str> = pairs.iter().skip(1).map(|(_, name)| *name).collect();
        names.join("/")
    }

    pub(super) fn name(&self) -> String {
        self.name.to_string()
    }

    /// The kept parts as a document.
    pub(crate) fn document(&self) -> NetworkInterface {
        let configuration = |one: &InstanceAddress| InterfaceIpConfiguration {
            properties: Some(InterfaceIpConfigurationProperties {
                primary: one.is_primary,
                private_ip_address: one.private.as_deref().map(str::to_owned),
                public_ip_address: one.public.clone().map(SubResource::to),
                ..InterfaceIpConfigurationProperties::default()
            }),
            ..InterfaceIpConfiguration::default()
        };
        NetworkInterface {
            properties: Some(NetworkInterfaceProperties {
                primary: self.is_primary,
                ip_configurations: Some(self.addresses.iter().map(configuration).collect()),
                ..NetworkInterfaceProperties::default()
            }),
            ..NetworkInterface::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SET: &str =
        "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/ss";

    fn instance_of(number: u32, dns: &str) -> ScaleSetInstance {
        let pool = format!("{SET}/backendAddressPools/pool");
        let own = format!("{SET}/virtualMachines/{number}/networkInterfaces/nic");
        serde_json::from_value(json!({
            "id": format!("{SET}/virtualMachines/{number}"), "name": format!("ss_{number}"), "instanceId": number.to_string(),
            "etag": "1", "location": "eastus", "zones": ["1"], "tags": {"a": "b"},
            "sku": {"name": "Standard_D2s_v5", "tier": "Standard"}, "resources": [{"extension": 1}],
            "properties": {
                "provisioningState": "Succeeded", "latestModelApplied": true, "vmId": format!("00000000-0000-4000-8000-{number:012}"),
                "hardwareProfile": {"vmSize": "Standard_D2s_v5", "more": 1},
                "osProfile": {"computerName": format!("ss-{number}"), "adminUsername": "azureuser"},
                "storageProfile": {"osDisk": {"name": format!("disk-{number}")}},
                "networkProfile": {"networkInterfaces": [{"id": own, "properties": {"primary": true, "deleteOption": "Delete"}}]},
                "networkProfileConfiguration": {"networkInterfaceConfigurations": [{"name": "nic", "properties": {
                    "primary": true, "dnsSettings": {"dnsServers": [dns]}, "ipConfigurations": [{"name": "ip", "properties": {
                        "primary": true, "loadBalancerBackendAddressPools": [{"id": pool}]}}]}}]},
                "instanceView": {"statuses": [{"code": "PowerState/running", "time": number.to_string()}], "vmAgent": {}},
            },
        }))
        .unwrap()
    }

    /// NODE-261: everything that a write of an instance sends is kept, and everything that describes its node.
    #[test]
    fn node_261_instances_keep_what_is_written_and_what_describes_them() {
        let recurring = Recurring::default();
        let kept = serde_json::to_value(instance(instance_of(3, "10.0.0.1"), &recurring)).unwrap();
        let whole = serde_json::to_value(instance_of(3, "10.0.0.1")).unwrap();
        let same = |at: &str| assert_eq!(kept.pointer(at), whole.pointer(at), "{at}");
        for member in ["id", "etag", "location", "instanceId", "zones", "sku/name"] {
            same(&format!("/{member}"));
        }
        for member in [
            "provisioningState",
            "hardwareProfile",
            "vmId",
            "osProfile/computerName",
            "networkProfile/networkInterfaces/0/id",
            "networkProfile/networkInterfaces/0/properties/primary",
            "networkProfileConfiguration",
            "instanceView/statuses/0/code",
        ] {
            same(&format!("/properties/{member}"));
        }
        for gone in ["/tags", "/resources", "/properties/storageProfile", "/properties/instanceView/vmAgent"]
        {
            assert_eq!(kept.pointer(gone), None, "{gone}");
        }
    }

    /// NODE-261: machines of one model share equal values, others do not.
    #[test]
    fn node_261_instances_share_what_they_have_in_common() {
        let recurring = Recurring::default();
        let keep =
            |number: u32, dns: &str| instance(instance_of(number, dns), &recurring).properties.unwrap();
        let (one, two, other) = (keep(1, "10.0.0.1"), keep(2, "10.0.0.1"), keep(3, "10.0.0.2"));
        let interfaces =
            |one: &ScaleSetInstanceProperties| one.network_profile_configuration.clone().unwrap();
        assert!(Arc::ptr_eq(&interfaces(&one), &interfaces(&two)));
        assert!(!Arc::ptr_eq(&interfaces(&one), &interfaces(&other)));
        assert!(Arc::ptr_eq(&one.instance_view.unwrap(), &other.instance_view.unwrap()));
        // If all values differ, the search for equal ones is bounded.
        let different: Vec<_> = (0..200).map(|number| keep(number, &number.to_string())).collect();
        assert!(recurring.interfaces.0.lock().len() <= MAX_DIFFERENT);
        drop(different);
    }

    /// NODE-261: the reduced interface of an instance describes its node like the whole document.
    #[test]
    fn node_261_interfaces_of_instances_keep_their_addresses() {
        let id = format!("{SET}/virtualMachines/3/networkInterfaces/nic");
        let public = format!("{id}/ipConfigurations/ip/publicIPAddresses/pub");
        let whole: Value = json!({"id": id, "name": "nic", "etag": "1", "properties": {
        "primary": true, "macAddress": "00", "ipConfigurations": [
            {"name": "ip", "properties": {"primary": true, "privateIPAddress": "10.0.0.4",
                "publicIPAddress": {"id": public}, "subnet": {"id": SET}}},
            {"name": "six", "properties": {"privateIPAddress": "fd00::4"}},
        ]}});
        let document: NetworkInterface = serde_json::from_value(whole).unwrap();
        let kept = InstanceInterface::of(&document);
        assert_eq!(kept.name(), "3/nic");
        assert_eq!(kept.name(), InstanceInterface::name_of(document.id.as_ref().unwrap()));
        let expected = json!({"properties": {"primary": true, "ipConfigurations": [
            {"properties": {"primary": true, "privateIPAddress": "10.0.0.4", "publicIPAddress": {"id": public}}},
            {"properties": {"privateIPAddress": "fd00::4"}},
        ]}});
        assert_eq!(serde_json::to_value(kept.document()).unwrap(), expected);
    }
}
