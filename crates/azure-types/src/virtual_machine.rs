//! Virtual machines: standalone ones, and those of availability sets and flexible scale sets (Azure REST reference,
//! "Virtual Machines").

use crate::ResourceId;
use crate::document::{SubResource, document};

document! {
    /// A virtual machine.
    VirtualMachine {
        /// The resource's own id.
        id: ResourceId,
        /// The resource's name.
        name: String,
        /// The machine and its state.
        properties: VirtualMachineProperties,
    }
}

document! {
    /// A virtual machine and its state.
    VirtualMachineProperties {
        /// The availability set that it belongs to, if any.
        availability_set: SubResource,
        /// The flexible scale set that it belongs to, if any.
        virtual_machine_scale_set: SubResource,
    }
}
