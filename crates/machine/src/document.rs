//! The common interface of the documents of both kinds of machines.

use azure_types::{
    InstanceView, NetworkInterfaceReference, ResourceId, ScaleSetInstance, VirtualMachine, VmId, Word,
};

use crate::instance_view::status;

/// The document of a machine: an instance of a uniform scale set, or a virtual machine.
pub trait MachineDocument {
    /// The machine's resource id.
    fn id(&self) -> Option<&ResourceId>;
    /// Its region.
    fn location(&self) -> Option<&str>;
    /// The zone of the machine; at most one.
    fn zones(&self) -> &[String];
    /// Its size.
    fn size(&self) -> Option<&str>;
    /// Its host name.
    fn host_name(&self) -> Option<&str>;
    /// The id that its firmware shows to the guest.
    fn vm_id(&self) -> Option<VmId>;
    /// `Succeeded`, `Creating`, `Updating`, `Deleting` or `Failed`, in any case; empty if Azure does not report it.
    fn provisioning_state(&self) -> &str;
    /// References to its network interfaces.
    fn interfaces(&self) -> &[NetworkInterfaceReference];
    /// Its instance view, if the request included it.
    fn view(&self) -> Option<&InstanceView>;
    /// Whether it belongs to a scale set, uniform or flexible.
    fn is_of_scale_set(&self) -> bool;
}

/// Implements the members that both documents have in the same places; `own` are the others.
macro_rules! machine_document {
    ($name:ident { $($own:item)* }) => {
        impl MachineDocument for $name {
            fn id(&self) -> Option<&ResourceId> {
                self.id.as_ref()
            }

            fn location(&self) -> Option<&str> {
                self.location.as_deref()
            }

            fn zones(&self) -> &[String] {
                self.zones.as_deref().unwrap_or_default()
            }

            fn host_name(&self) -> Option<&str> {
                self.properties.as_ref()?.os_profile.as_ref()?.computer_name.as_deref()
            }

            fn vm_id(&self) -> Option<VmId> {
                self.properties.as_ref()?.vm_id.filter(|id| *id != VmId::default())
            }

            fn interfaces(&self) -> &[NetworkInterfaceReference] {
                let profile = self.properties.as_ref().and_then(|p| p.network_profile.as_ref());
                profile.and_then(|profile| profile.network_interfaces.as_deref()).unwrap_or_default()
            }

            $($own)*
        }
    };
}

machine_document!(ScaleSetInstance {
    fn size(&self) -> Option<&str> {
        self.sku.as_ref()?.name.as_deref()
    }

    fn provisioning_state(&self) -> &str {
        let state = self.properties.as_ref().and_then(|p| p.provisioning_state.as_ref());
        state.map(Word::as_str).unwrap_or_default()
    }

    fn view(&self) -> Option<&InstanceView> {
        self.properties.as_ref()?.instance_view.as_deref()
    }

    fn is_of_scale_set(&self) -> bool {
        true
    }
});

machine_document!(VirtualMachine {
    fn size(&self) -> Option<&str> {
        self.properties.as_ref()?.hardware_profile.as_ref()?.vm_size.as_deref()
    }

    /// Lists of views contain nothing else: the state comes from the view.
    fn provisioning_state(&self) -> &str {
        let state = self.properties.as_ref().and_then(|p| p.provisioning_state.as_ref());
        state.map_or_else(|| status(self.view(), "ProvisioningState").unwrap_or_default(), Word::as_str)
    }

    fn view(&self) -> Option<&InstanceView> {
        self.properties.as_ref()?.instance_view.as_ref()
    }

    fn is_of_scale_set(&self) -> bool {
        self.properties.as_ref().is_some_and(|properties| properties.virtual_machine_scale_set.is_some())
    }
});
