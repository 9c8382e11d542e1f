//! The fields of an AzureMachine.

use crate::common::{Condition, Future, Initialization, Tags, V1Beta2Status};
use crate::machine::{
    AdditionalCapabilities, DataDisk, Diagnostics, Image, NetworkInterface, OsDisk, SecurityProfile,
    SpotVmOptions, SystemAssignedRole, UserAssignedIdentity, VmExtension,
};
use crate::object::object;

object! {
    /// The desired state of a virtual machine.
    AzureMachineSpec {
        /// Whether packets bypass the host's switch. Deprecated: set it in networkInterfaces.
        accelerated_networking: bool,
        /// Further capabilities of the machine.
        additional_capabilities: AdditionalCapabilities,
        /// Tags of the machine, besides the cluster's.
        additional_tags: Tags,
        /// Whether the machine gets a public address.
        #[serde(rename = "allocatePublicIP")]
        allocate_public_ip: bool,
        /// The id of the machine's capacity reservation group.
        #[serde(rename = "capacityReservationGroupID")]
        capacity_reservation_group_id: String,
        /// Data disks.
        data_disks: Vec<DataDisk>,
        /// The boot diagnostics of the machine.
        diagnostics: Diagnostics,
        /// Whether extensions are forbidden.
        disable_extension_operations: bool,
        /// Whether the extension that waits for the machine to join its cluster is disabled. It is, unless this is
        /// false.
        #[serde(rename = "disableVMBootstrapExtension")]
        disable_vm_bootstrap_extension: bool,
        /// DNS servers of the machine.
        dns_servers: Vec<String>,
        /// Whether the machine may send packets that are not from itself.
        #[serde(rename = "enableIPForwarding")]
        enable_ip_forwarding: bool,
        /// The availability zone. The Machine's own failure domain takes precedence.
        failure_domain: String,
        /// The type of the machine's identity in Azure: None, SystemAssigned or UserAssigned.
        #[schemars(extend("default" = "None", "enum" = ["None", "SystemAssigned", "UserAssigned"]))]
        identity: String,
        /// The image. The default is an image for the version of Kubernetes.
        image: Image,
        /// Network interfaces. The first one carries the machine's traffic with the cluster.
        network_interfaces: Vec<NetworkInterface>,
        /// The OS disk.
        #[schemars(required)]
        os_disk: OsDisk,
        /// The id of the machine, with azure:// before it. Set by the controller.
        #[serde(rename = "providerID")]
        provider_id: String,
        /// The name of a role assignment. Deprecated: set it in systemAssignedIdentityRole.
        role_assignment_name: String,
        /// The protection of the machine from its host.
        security_profile: SecurityProfile,
        /// Makes the machine a spot machine.
        #[serde(rename = "spotVMOptions")]
        spot_vm_options: SpotVmOptions,
        /// The SSH key for people: a line of authorized_keys, in base64. By default a key is generated, and its private
        /// half is discarded.
        #[serde(rename = "sshPublicKey")]
        ssh_public_key: String,
        /// The subnet of the machine. Deprecated: name it in networkInterfaces.
        subnet_name: String,
        /// The role of the system-assigned identity.
        system_assigned_identity_role: SystemAssignedRole,
        /// User-assigned identities.
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

    /// The observed state of a virtual machine.
    AzureMachineStatus {
        /// What is complete, for Cluster API's contract v1beta2.
        initialization: Initialization,
        /// The addresses of the machine.
        addresses: Vec<NodeAddress>,
        /// Conditions of the machine and its parts.
        conditions: Vec<Condition>,
        /// The message of a terminal failure of the machine. Its owner replaces it.
        failure_message: String,
        /// The reason of a terminal failure of the machine, in one word.
        failure_reason: String,
        /// Operations of Azure that had not ended at the last reconcile.
        long_running_operation_states: Vec<Future>,
        /// Whether the machine exists and runs.
        ready: bool,
        /// The state of the machine in Azure.
        vm_state: String,
        /// What Cluster API's contract v1beta2 asks.
        v1beta2: V1Beta2Status,
    }

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
