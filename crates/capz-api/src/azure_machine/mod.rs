//! AzureMachine: one virtual machine, and AzureMachineTemplate, from which machines are made.

mod defaults;
mod immutable;
mod template;
mod validation;

use crate::common::{Condition, Future, Tags};
use crate::machine::{
    AdditionalCapabilities, DataDisk, Diagnostics, Image, NetworkInterface, OsDisk, SecurityProfile,
    SpotVmOptions, SystemAssignedRole, UserAssignedIdentity, VmExtension,
};
use crate::object::object;

pub use defaults::set_defaults;
pub use template::{
    AzureMachineTemplateResource, AzureMachineTemplateSpec, AzureMachineTemplateStatus, NodeInfo,
    set_template_defaults, validate_template,
};
pub use validation::validate;

object! {
    /// What a virtual machine shall be.
    AzureMachineSpec {
        /// Whether packets go past the host's switch. Deprecated: set it in networkInterfaces.
        accelerated_networking: bool,
        /// Further capabilities of the machine.
        additional_capabilities: AdditionalCapabilities,
        /// Tags of the machine, beside the cluster's.
        additional_tags: Tags,
        /// Whether the machine gets a public address.
        #[serde(rename = "allocatePublicIP")]
        allocate_public_ip: bool,
        /// The id of the capacity reservation group that the machine is taken from.
        #[serde(rename = "capacityReservationGroupID")]
        capacity_reservation_group_id: String,
        /// Disks for data.
        data_disks: Vec<DataDisk>,
        /// What is kept for finding out why the machine does not start.
        diagnostics: Diagnostics,
        /// Whether extensions are forbidden.
        disable_extension_operations: bool,
        /// Whether the extension that watches the machine join its cluster is left away. It is, unless this is false.
        #[serde(rename = "disableVMBootstrapExtension")]
        disable_vm_bootstrap_extension: bool,
        /// DNS servers of the machine.
        dns_servers: Vec<String>,
        /// Whether the machine may send packets that are not from itself.
        #[serde(rename = "enableIPForwarding")]
        enable_ip_forwarding: bool,
        /// The availability zone. The Machine's own failure domain comes first.
        failure_domain: String,
        /// The identity that the machine has in Azure: None, SystemAssigned or UserAssigned.
        #[schemars(extend("default" = "None", "enum" = ["None", "SystemAssigned", "UserAssigned"]))]
        identity: String,
        /// The image. Without one there is an image for the version of Kubernetes.
        image: Image,
        /// Network interfaces. The first one carries the machine's traffic with the cluster.
        network_interfaces: Vec<NetworkInterface>,
        /// The disk with the system.
        #[schemars(required)]
        os_disk: OsDisk,
        /// The id of the machine, with azure:// before it. Set by the controller.
        #[serde(rename = "providerID")]
        provider_id: String,
        /// The name of a role assignment. Deprecated: set it in systemAssignedIdentityRole.
        role_assignment_name: String,
        /// How the machine is kept safe from its host.
        security_profile: SecurityProfile,
        /// Makes the machine a spot machine.
        #[serde(rename = "spotVMOptions")]
        spot_vm_options: SpotVmOptions,
        /// The key with which people sign in: a line of authorized_keys, in base64. One is made if there is none, and its
        /// private half is thrown away.
        #[serde(rename = "sshPublicKey")]
        ssh_public_key: String,
        /// The subnet of the machine. Deprecated: name it in networkInterfaces.
        subnet_name: String,
        /// The role of an identity that comes and goes with the machine.
        system_assigned_identity_role: SystemAssignedRole,
        /// Identities that exist by themselves.
        user_assigned_identities: Vec<UserAssignedIdentity>,
        /// The id of a flexible scale set that the machine joins.
        #[serde(rename = "virtualMachineScaleSetID")]
        virtual_machine_scale_set_id: String,
        /// Extensions of the machine.
        vm_extensions: Vec<VmExtension>,
        /// The size, such as Standard_D2s_v3.
        #[schemars(required)]
        vm_size: String,
    }
}

object! {
    /// What a virtual machine is.
    AzureMachineStatus {
        /// The addresses of the machine.
        addresses: Vec<NodeAddress>,
        /// What is known of the parts of the machine.
        conditions: Vec<Condition>,
        /// What is wrong with the machine for good, in words. Whoever owns it replaces it.
        failure_message: String,
        /// What is wrong with the machine for good, in one word.
        failure_reason: String,
        /// Operations of Azure that had not ended when the machine was last looked at.
        long_running_operation_states: Vec<Future>,
        /// Whether the machine is there and runs.
        ready: bool,
        /// The state of the machine in Azure.
        vm_state: String,
    }
}

object! {
    /// An address of a node.
    NodeAddress {
        /// The address.
        #[schemars(required)]
        address: String,
        /// Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.
        #[serde(rename = "type")]
        #[schemars(required)]
        kind: String,
    }
}
