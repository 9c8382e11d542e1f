//! The fields of an AzureManagedMachinePool.

use std::collections::BTreeMap;

use super::node_config::{KubeletConfig, LinuxOsConfig};
use crate::common::{Condition, Future, Initialization, Quantity, Tags, V1Beta2Status};
use crate::object::object;
use crate::text::text;

object! {
    /// The desired state of a node pool.
    AzureManagedMachinePoolSpec {
        /// Tags of the pool's resources, besides the cluster's.
        additional_tags: Tags,
        /// JSON merge patches, in YAML or JSON, of the ManagedClustersAgentPool that the pool becomes, in this order. They
        /// are for members that this kind does not have.
        aso_managed_clusters_agent_pool_patches: Vec<String>,
        /// The availability zones of the nodes. Immutable.
        availability_zones: Vec<String>,
        /// Whether the hosts encrypt the nodes' disks. Immutable once it is set.
        enable_encryption_at_host: bool,
        /// Whether the nodes run an image that is certified for FIPS 140. Immutable once it is set.
        #[serde(rename = "enableFIPS")]
        enable_fips: bool,
        /// Whether each node gets a public address. Immutable.
        #[serde(rename = "enableNodePublicIP")]
        enable_node_public_ip: bool,
        /// Whether nodes can have disks of the type UltraSSD_LRS. Immutable.
        #[serde(rename = "enableUltraSSD")]
        enable_ultra_ssd: bool,
        /// The configuration of the kubelets. Immutable.
        kubelet_config: KubeletConfig,
        /// The disk of the kubelet's data: OS, or Temporary, which needs the feature
        /// Microsoft.ContainerService/KubeletDisk of the subscription. Immutable.
        #[schemars(extend("enum" = ["OS", "Temporary"]))]
        kubelet_disk_type: String,
        /// The configuration of the nodes' Linux. Immutable.
        #[serde(rename = "linuxOSConfig")]
        linux_os_config: LinuxOsConfig,
        /// The maximum number of pods on a node, from 10 to 250. Immutable.
        max_pods: i64,
        /// The mode: System pools run the cluster's own pods, and a cluster has at least one; User pools run the
        /// others.
        #[schemars(required, extend("enum" = ["System", "User"]))]
        mode: String,
        /// The name of the pool in Azure: lower-case letters and digits, at most 12, or 6 for Windows. The default is the
        /// name of the object. Immutable.
        name: String,
        /// Labels of the nodes. Keys cannot begin with kubernetes.azure.com.
        node_labels: BTreeMap<String, String>,
        /// The id of the public address prefix that contains the nodes' public addresses. Immutable.
        #[serde(rename = "nodePublicIPPrefixID")]
        node_public_ip_prefix_id: String,
        /// The size of the OS disk. With 0 it depends on the size of the machines. Immutable.
        #[serde(rename = "osDiskSizeGB")]
        os_disk_size_gb: i64,
        /// The type of the OS disk: Managed, or Ephemeral, on the host. Immutable.
        #[schemars(extend("default" = "Managed", "enum" = ["Ephemeral", "Managed"]))]
        os_disk_type: String,
        /// The operating system: Linux, or Windows, which needs the network plugin azure and the mode User. Immutable.
        #[serde(rename = "osType")]
        #[schemars(extend("default" = "Linux", "enum" = ["Linux", "Windows"]))]
        os_type: String,
        /// The ids of the nodes' machines, with azure:// before each. Set by the controller.
        #[serde(rename = "providerIDList")]
        provider_id_list: Vec<String>,
        /// What happens to the machine of a node that is removed: Delete, or Deallocate, which keeps its disks.
        #[schemars(extend("default" = "Delete", "enum" = ["Deallocate", "Delete"]))]
        scale_down_mode: String,
        /// The priority of the machines: Regular, or Spot, which Azure may evict. Immutable.
        #[schemars(extend("enum" = ["Regular", "Spot"]))]
        scale_set_priority: String,
        /// The limits of the cluster autoscaler. If it is set, the autoscaler decides how many nodes there are.
        scaling: PoolScaling,
        /// The size of the machines, such as Standard_D2s_v3. Immutable.
        #[schemars(required)]
        sku: String,
        /// The highest price of a spot machine for an hour, in US dollars, or -1 for the price of a regular one.
        spot_max_price: Quantity,
        /// The subnet of the nodes. The default is the control plane's. Immutable once it is set.
        subnet_name: String,
        /// Taints of the nodes.
        taints: Vec<PoolTaint>,
    }

    /// The limits of the cluster autoscaler.
    PoolScaling {
        /// The maximum number of nodes.
        max_size: i64,
        /// The minimum number of nodes.
        min_size: i64,
    }

    /// A taint of a node.
    PoolTaint {
        /// What it does to pods that do not tolerate it.
        #[schemars(required, extend("enum" = ["NoSchedule", "NoExecute", "PreferNoSchedule"]))]
        effect: String,
        /// Its key.
        #[schemars(required)]
        key: String,
        /// Its value.
        #[schemars(required)]
        value: String,
    }

    /// The observed state of a node pool.
    AzureManagedMachinePoolStatus {
        /// What is complete, for Cluster API's contract v1beta2.
        initialization: Initialization,
        /// Conditions of the pool.
        conditions: Vec<Condition>,
        /// The message of a failure of the pool.
        error_message: String,
        /// The reason of a failure of the pool, in one word.
        error_reason: String,
        /// Operations of Azure that had not ended at the last reconcile.
        long_running_operation_states: Vec<Future>,
        /// Whether the pool exists and its nodes' machines are known.
        ready: bool,
        /// The number of machines.
        replicas: i32,
        /// What Cluster API's contract v1beta2 asks.
        v1beta2: V1Beta2Status,
    }
}

impl PoolTaint {
    /// The taint as AKS and `kubectl taint` write it: `key=value:effect`.
    pub fn text(&self) -> String {
        format!("{}={}:{}", text(&self.key), text(&self.value), text(&self.effect))
    }
}
