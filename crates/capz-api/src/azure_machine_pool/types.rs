//! The fields of an AzureMachinePool.

use crate::common::{Condition, Future, Initialization, IntOrPercent, Tags, V1Beta2Status};
use crate::machine::{
    AdditionalCapabilities, DataDisk, Diagnostics, Image, NetworkInterface, OsDisk, SecurityProfile,
    SpotVmOptions, SystemAssignedRole, UserAssignedIdentity, VmExtension,
};
use crate::object::object;

object! {
    /// The desired state of a scale set.
    AzureMachinePoolSpec {
        /// Tags of the scale set, besides the cluster's.
        additional_tags: Tags,
        /// The type of the machines' identity in Azure: None, SystemAssigned or UserAssigned.
        #[schemars(extend("default" = "None", "enum" = ["None", "SystemAssigned", "UserAssigned"]))]
        identity: String,
        /// The region.
        #[schemars(required)]
        location: String,
        /// The orchestration mode: Uniform, or Flexible, whose instances are virtual machines of their own.
        #[schemars(extend("default" = "Uniform", "enum" = ["Uniform", "Flexible"]))]
        orchestration_mode: String,
        /// The number of fault domains over which machines are spread.
        platform_fault_domain_count: i32,
        /// The id of the scale set, with azure:// before it. Set by the controller.
        #[serde(rename = "providerID")]
        provider_id: String,
        /// The ids of the instances, with azure:// before each. Set by the controller.
        #[serde(rename = "providerIDList")]
        provider_id_list: Vec<String>,
        /// The name of a role assignment. Deprecated: set it in systemAssignedIdentityRole.
        role_assignment_name: String,
        /// How outdated machines are replaced.
        #[schemars(extend("default" = {
            "type": "RollingUpdate",
            "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0, "deletePolicy": "Oldest" }
        }))]
        strategy: DeploymentStrategy,
        /// The role of the scale set's system-assigned identity.
        system_assigned_identity_role: SystemAssignedRole,
        /// The template of the machines.
        #[schemars(required)]
        template: AzureMachinePoolMachineTemplate,
        /// User-assigned identities.
        user_assigned_identities: Vec<UserAssignedIdentity>,
        /// Whether all zones must have the same number of machines, even if that means fewer.
        zone_balance: bool,
    }

    /// What the machines of a scale set are.
    AzureMachinePoolMachineTemplate {
        /// Whether packets bypass the host's switch. Deprecated: set it in networkInterfaces.
        accelerated_networking: bool,
        /// Data disks.
        data_disks: Vec<DataDisk>,
        /// The boot diagnostics of the machines.
        diagnostics: Diagnostics,
        /// Whether the extension that waits for a machine to join its cluster is disabled. It is, unless this is false.
        #[serde(rename = "disableVMBootstrapExtension")]
        disable_vm_bootstrap_extension: bool,
        /// The image. The default is an image for the version of Kubernetes.
        image: Image,
        /// Network interfaces. The first one carries the machine's traffic with the cluster.
        network_interfaces: Vec<NetworkInterface>,
        /// The OS disk.
        #[schemars(required)]
        os_disk: OsDisk,
        /// The protection of the machines from their hosts.
        security_profile: SecurityProfile,
        /// Makes the machines spot machines.
        #[serde(rename = "spotVMOptions")]
        spot_vm_options: SpotVmOptions,
        /// The SSH key for people: a line of authorized_keys, in base64. By default a key is generated, and its private
        /// half is discarded.
        #[serde(rename = "sshPublicKey")]
        ssh_public_key: String,
        /// The subnet of the machines. Deprecated: name it in networkInterfaces.
        subnet_name: String,
        /// How many minutes before its end a machine is notified, from 5 to 15.
        terminate_notification_timeout: i64,
        /// Further capabilities of the machines.
        additional_capabilities: AdditionalCapabilities,
        /// Extensions of the machines.
        vm_extensions: Vec<VmExtension>,
        /// The size, such as Standard_D2s_v3.
        #[schemars(required)]
        vm_size: String,
    }

    /// How outdated machines are replaced.
    DeploymentStrategy {
        /// The limits of a rolling update.
        rolling_update: RollingUpdate,
        /// RollingUpdate.
        #[serde(rename = "type")]
        #[schemars(extend("default" = "RollingUpdate", "enum" = ["RollingUpdate"]))]
        kind: String,
    }

    /// How many machines are replaced at a time.
    RollingUpdate {
        /// The machine to delete first: Random, Newest or Oldest.
        #[schemars(extend("default" = "Oldest", "enum" = ["Random", "Newest", "Oldest"]))]
        delete_policy: String,
        /// How many machines more than desired are permitted, as a number or a percentage, rounded up.
        #[schemars(extend("default" = 1))]
        max_surge: IntOrPercent,
        /// How many machines fewer than desired may be ready, as a number or a percentage, rounded down.
        #[schemars(extend("default" = 0))]
        max_unavailable: IntOrPercent,
    }

    /// The observed state of a scale set.
    AzureMachinePoolStatus {
        /// What is complete, for Cluster API's contract v1beta2.
        initialization: Initialization,
        /// Conditions of the scale set and its parts.
        conditions: Vec<Condition>,
        /// The message of a terminal failure of the scale set.
        failure_message: String,
        /// The reason of a terminal failure of the scale set, in one word.
        failure_reason: String,
        /// The image of the machines.
        image: Image,
        /// The kind of the objects that represent the machines.
        infrastructure_machine_kind: String,
        /// Instances of the scale set. No longer set: see AzureMachinePoolMachines.
        instances: Vec<AzureMachinePoolInstance>,
        /// The number of machines when it last matched the desired number.
        last_reconciled_replicas: i32,
        /// Operations of Azure that had not ended at the last reconcile.
        long_running_operation_states: Vec<Future>,
        /// The state of the scale set in Azure.
        provisioning_state: String,
        /// Whether the scale set exists and runs.
        ready: bool,
        /// The number of ready machines.
        replicas: i32,
        /// The version of Kubernetes.
        version: String,
        /// What Cluster API's contract v1beta2 asks.
        v1beta2: V1Beta2Status,
    }

    /// An instance of a scale set.
    AzureMachinePoolInstance {
        /// Its id in the scale set.
        #[serde(rename = "instanceID")]
        instance_id: String,
        /// Its name.
        instance_name: String,
        /// Whether it has the latest model of the scale set.
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
