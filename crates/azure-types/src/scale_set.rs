//! Scale sets and their instances (Azure REST reference, "Virtual Machine Scale Sets").

use std::sync::Arc;

use crate::document::{ExtendedLocation, Sku, SubResource, Tags, Word, document, resource};
use crate::resource_id::ResourceId;
use crate::vm_id::VmId;

resource! {
    /// A scale set: machines made from one model.
    ScaleSet {
        /// The machines' size and their number.
        sku: Sku,
        /// The zones that machines are spread over.
        zones: Vec<String>,
        /// The edge zone that holds it, if any.
        extended_location: ExtendedLocation,
        /// The model and its state.
        properties: ScaleSetProperties,
    }
}

document! {
    /// The model of a scale set and its state.
    ScaleSetProperties {
        /// `Succeeded`, `Creating`, `Updating`, `Deleting` or `Failed`.
        provisioning_state: Word,
        /// `Uniform` (also where absent) or `Flexible`.
        orchestration_mode: Word,
        /// What machines are made from.
        virtual_machine_profile: ScaleSetMachineProfile,
    }
}

document! {
    /// What the machines of a scale set are made from.
    ScaleSetMachineProfile {
        /// How machines are named.
        os_profile: OsProfile,
        /// The image.
        storage_profile: StorageProfile,
        /// The machines' network interfaces.
        network_profile: InterfaceConfigurations,
    }
}

document! {
    /// How machines are named.
    OsProfile {
        /// The host name of one machine.
        computer_name: String,
        /// What the host names of a scale set begin with.
        computer_name_prefix: String,
    }
}

document! {
    /// The image of a machine.
    StorageProfile {
        /// Which image it is.
        image_reference: ImageReference,
    }
}

document! {
    /// An image.
    ImageReference {
        /// The id of an own image.
        id: String,
        /// The image's publisher.
        publisher: String,
        /// The image's product line.
        offer: String,
        /// The image's variant.
        sku: String,
        /// The image's version.
        version: String,
    }
}

document! {
    /// The network interfaces of a scale set's model or of one instance.
    InterfaceConfigurations {
        /// The version of the network API by which a flexible set makes its interfaces; uniform sets have none.
        network_api_version: Word,
        /// One entry an interface.
        network_interface_configurations: Vec<InterfaceConfiguration>,
    }
}

document! {
    /// What one network interface is made from.
    InterfaceConfiguration {
        /// The interface's name.
        name: String,
        /// What the interface has.
        properties: InterfaceConfigurationProperties,
    }
}

document! {
    /// What one network interface has.
    InterfaceConfigurationProperties {
        /// Whether it is the machine's first interface.
        primary: bool,
        /// Its addresses.
        ip_configurations: Vec<ScaleSetIpConfiguration>,
    }
}

document! {
    /// What one address of an interface is made from.
    ScaleSetIpConfiguration {
        /// The configuration's name.
        name: String,
        /// What the address is and which pools it belongs to.
        properties: ScaleSetIpConfigurationProperties,
    }
}

document! {
    /// An address of an interface and the pools that it belongs to.
    ScaleSetIpConfigurationProperties {
        /// Whether it is the interface's first address.
        primary: bool,
        /// `IPv4` (also where absent) or `IPv6`.
        #[serde(rename = "privateIPAddressVersion")]
        private_ip_address_version: Word,
        /// The subnet that the address comes from.
        subnet: SubResource,
        /// The pools that the address is a member of.
        load_balancer_backend_address_pools: Vec<SubResource>,
    }
}

document! {
    /// One machine of a uniform scale set.
    ScaleSetInstance {
        /// The resource's own id.
        id: ResourceId,
        /// The resource's name.
        name: String,
        /// The version of the document, for `If-Match`.
        etag: String,
        /// The region. Machines of a set have the same, and may share it, as what follows.
        location: Arc<str>,
        /// The resource's tags.
        tags: Tags,
        /// The instance's number in its scale set.
        instance_id: String,
        /// The machine's size.
        sku: Arc<Sku>,
        /// The zone that holds it.
        zones: Arc<[String]>,
        /// The machine and its state.
        properties: ScaleSetInstanceProperties,
    }
}

document! {
    /// One machine of a uniform scale set and its state.
    ScaleSetInstanceProperties {
        /// `Succeeded`, `Creating`, `Updating`, `Deleting` or `Failed`.
        provisioning_state: Word,
        /// Whether the machine is made from the model as it is now.
        latest_model_applied: bool,
        /// How the machine is named.
        os_profile: OsProfile,
        /// The id that the machine's firmware shows inside.
        vm_id: VmId,
        /// The machine's size.
        hardware_profile: Arc<HardwareProfile>,
        /// The machine's interfaces by id.
        network_profile: NetworkProfile,
        /// The machine's interfaces as they were configured. Machines of a set have the same, and may share it.
        network_profile_configuration: Arc<InterfaceConfigurations>,
        /// What the machine is doing; only where asked for. It may be shared, too.
        instance_view: Arc<InstanceView>,
    }
}

document! {
    /// The size of a machine.
    HardwareProfile {
        /// The size's name.
        vm_size: String,
    }
}

document! {
    /// The interfaces of a machine by id.
    NetworkProfile {
        /// One entry an interface.
        network_interfaces: Vec<NetworkInterfaceReference>,
    }
}

document! {
    /// A machine's interface by id.
    NetworkInterfaceReference {
        /// The interface's id.
        id: ResourceId,
        /// Whether it is the first one.
        properties: NetworkInterfaceReferenceProperties,
    }
}

document! {
    /// Whether an interface is its machine's first.
    NetworkInterfaceReferenceProperties {
        /// Whether it is the machine's first interface.
        primary: bool,
    }
}

document! {
    /// What a machine is doing.
    InstanceView {
        /// States such as `ProvisioningState/succeeded` and `PowerState/running`.
        statuses: Vec<InstanceViewStatus>,
        /// The fault domain that holds it.
        platform_fault_domain: i32,
    }
}

document! {
    /// One state of a machine.
    InstanceViewStatus {
        /// Kind and value, joined by a slash.
        code: String,
    }
}
