//! Virtual machines: standalone ones, and those of availability sets and flexible scale sets (Azure REST reference,
//! "Virtual Machines").

use crate::document::{SubResource, Word, document, resource};
use crate::scale_set::{HardwareProfile, InstanceView, NetworkProfile, OsProfile};
use crate::vm_id::VmId;

resource! {
    /// A virtual machine.
    VirtualMachine {
        /// The zone that holds it.
        zones: Vec<String>,
        /// The machine and its state.
        properties: VirtualMachineProperties,
    }
}

document! {
    /// A virtual machine and its state.
    VirtualMachineProperties {
        /// `Succeeded`, `Creating`, `Updating`, `Deleting` or `Failed`.
        provisioning_state: Word,
        /// How the machine is named.
        os_profile: OsProfile,
        /// The id that the machine's firmware shows inside.
        vm_id: VmId,
        /// The machine's size.
        hardware_profile: HardwareProfile,
        /// The machine's interfaces by id.
        network_profile: NetworkProfile,
        /// What the machine is doing; only where asked for.
        instance_view: InstanceView,
        /// The availability set that it belongs to, if any.
        availability_set: SubResource,
        /// The flexible scale set that it belongs to, if any.
        virtual_machine_scale_set: SubResource,
    }
}
