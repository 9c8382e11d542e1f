//! AzureMachinePool: a scale set, and AzureMachinePoolMachine, an instance of one.

mod defaults;
mod instance;
mod validation;

use crate::common::{Condition, Future, IntOrPercent, Tags};
use crate::machine::{
    AdditionalCapabilities, DataDisk, Diagnostics, Image, NetworkInterface, OsDisk, SecurityProfile,
    SpotVmOptions, SystemAssignedRole, UserAssignedIdentity, VmExtension,
};
use crate::object::object;

pub use defaults::set_defaults;
pub use instance::{AzureMachinePoolMachineSpec, AzureMachinePoolMachineStatus, validate_instance};
pub use validation::validate;

object! {
    /// What a scale set shall be.
    AzureMachinePoolSpec {
        /// Tags of the scale set, beside the cluster's.
        additional_tags: Tags,
        /// The identity that the machines have in Azure: None, SystemAssigned or UserAssigned.
        #[schemars(extend("default" = "None", "enum" = ["None", "SystemAssigned", "UserAssigned"]))]
        identity: String,
        /// The region.
        #[schemars(required)]
        location: String,
        /// How the scale set treats its machines: Uniform, or Flexible, as machines of their own.
        #[schemars(extend("default" = "Uniform", "enum" = ["Uniform", "Flexible"]))]
        orchestration_mode: String,
        /// Over how many fault domains machines are spread.
        platform_fault_domain_count: i32,
        /// The id of the scale set, with azure:// before it. Set by the controller.
        #[serde(rename = "providerID")]
        provider_id: String,
        /// The ids of the instances, with azure:// before each. Set by the controller.
        #[serde(rename = "providerIDList")]
        provider_id_list: Vec<String>,
        /// The name of a role assignment. Deprecated: set it in systemAssignedIdentityRole.
        role_assignment_name: String,
        /// How machines are replaced by newer ones.
        #[schemars(extend("default" = {
            "type": "RollingUpdate",
            "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0, "deletePolicy": "Oldest" }
        }))]
        strategy: DeploymentStrategy,
        /// The role of an identity that comes and goes with the scale set.
        system_assigned_identity_role: SystemAssignedRole,
        /// What the machines are.
        #[schemars(required)]
        template: AzureMachinePoolMachineTemplate,
        /// Identities that exist by themselves.
        user_assigned_identities: Vec<UserAssignedIdentity>,
        /// Whether there are as many machines in each zone, even if that means fewer.
        zone_balance: bool,
    }
}

object! {
    /// What the machines of a scale set are.
    AzureMachinePoolMachineTemplate {
        /// Whether packets go past the host's switch. Deprecated: set it in networkInterfaces.
        accelerated_networking: bool,
        /// Disks for data.
        data_disks: Vec<DataDisk>,
        /// What is kept for finding out why a machine does not start.
        diagnostics: Diagnostics,
        /// Whether the extension that watches a machine join its cluster is left away. It is, unless this is false.
        #[serde(rename = "disableVMBootstrapExtension")]
        disable_vm_bootstrap_extension: bool,
        /// The image. Without one there is an image for the version of Kubernetes.
        image: Image,
        /// Network interfaces. The first one carries the machine's traffic with the cluster.
        network_interfaces: Vec<NetworkInterface>,
        /// The disk with the system.
        #[schemars(required)]
        os_disk: OsDisk,
        /// How the machines are kept safe from their hosts.
        security_profile: SecurityProfile,
        /// Makes the machines spot machines.
        #[serde(rename = "spotVMOptions")]
        spot_vm_options: SpotVmOptions,
        /// The key with which people sign in: a line of authorized_keys, in base64. One is made if there is none, and its
        /// private half is thrown away.
        #[serde(rename = "sshPublicKey")]
        ssh_public_key: String,
        /// The subnet of the machines. Deprecated: name it in networkInterfaces.
        subnet_name: String,
        /// How many minutes before its end a machine is told of it, from 5 to 15.
        terminate_notification_timeout: i64,
        /// Further capabilities of the machines.
        additional_capabilities: AdditionalCapabilities,
        /// Extensions of the machines.
        vm_extensions: Vec<VmExtension>,
        /// The size, such as Standard_D2s_v3.
        #[schemars(required)]
        vm_size: String,
    }
}

object! {
    /// How machines are replaced by newer ones.
    DeploymentStrategy {
        /// How many at a time.
        rolling_update: RollingUpdate,
        /// RollingUpdate.
        #[serde(rename = "type")]
        #[schemars(extend("default" = "RollingUpdate", "enum" = ["RollingUpdate"]))]
        kind: String,
    }
}

object! {
    /// How many machines are replaced at a time.
    RollingUpdate {
        /// Which machine goes first: Random, Newest or Oldest.
        #[schemars(extend("default" = "Oldest", "enum" = ["Random", "Newest", "Oldest"]))]
        delete_policy: String,
        /// How many machines more than wanted there may be, as a number or a share of them, rounded up.
        #[schemars(extend("default" = 1))]
        max_surge: IntOrPercent,
        /// How many machines fewer than wanted may be ready, as a number or a share of them, rounded down.
        #[schemars(extend("default" = 0))]
        max_unavailable: IntOrPercent,
    }
}

object! {
    /// What a scale set is.
    AzureMachinePoolStatus {
        /// What is known of the parts of the scale set.
        conditions: Vec<Condition>,
        /// What is wrong with the scale set for good, in words.
        failure_message: String,
        /// What is wrong with the scale set for good, in one word.
        failure_reason: String,
        /// The image of the machines.
        image: Image,
        /// The kind of the objects that stand for the machines.
        infrastructure_machine_kind: String,
        /// Machines of the scale set. Not filled any more: see AzureMachinePoolMachines.
        instances: Vec<AzureMachinePoolInstance>,
        /// How many machines there were when there were as many as wanted.
        last_reconciled_replicas: i32,
        /// Operations of Azure that had not ended when the scale set was last looked at.
        long_running_operation_states: Vec<Future>,
        /// The state of the scale set in Azure.
        provisioning_state: String,
        /// Whether the scale set is there and runs.
        ready: bool,
        /// How many machines are ready.
        replicas: i32,
        /// The version of Kubernetes.
        version: String,
    }
}

object! {
    /// A machine of a scale set.
    AzureMachinePoolInstance {
        /// Its id in the scale set.
        #[serde(rename = "instanceID")]
        instance_id: String,
        /// Its name.
        instance_name: String,
        /// Whether it is as the scale set says now.
        #[schemars(required)]
        latest_model_applied: bool,
        /// Its id, with azure:// before it.
        #[serde(rename = "providerID")]
        provider_id: String,
        /// Its state in Azure.
        provisioning_state: String,
        /// Its version of Kubernetes.
        version: String,
    }
}
