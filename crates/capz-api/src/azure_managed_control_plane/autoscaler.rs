//! Parameters of the cluster autoscaler. All values are texts.

use crate::object::object;

object! {
    /// Parameters of the cluster autoscaler.
    AutoscalerProfile {
        /// Whether similar pools are kept at the same size.
        #[schemars(extend("default" = "false", "enum" = ["true", "false"]))]
        balance_similar_node_groups: String,
        /// How the pool that grows is chosen.
        #[schemars(extend("default" = "random", "enum" = ["least-waste", "most-pods", "priority", "random"]))]
        expander: String,
        /// The number of empty nodes that are deleted at the same time.
        #[schemars(extend("default" = "10"))]
        max_empty_bulk_delete: String,
        /// How many seconds pods get to end before their node is removed.
        #[schemars(extend("default" = "600", "pattern" = r"^(\d+)$"))]
        max_graceful_termination_sec: String,
        /// How long a machine may take to become a node, in minutes, such as 15m.
        #[schemars(extend("default" = "15m", "pattern" = r"^(\d+)m$"))]
        max_node_provision_time: String,
        /// The share of nodes, from 0 to 100, that may be unready before the autoscaler pauses.
        #[schemars(length(min = 1, max = 3), extend("default" = "45", "pattern" = r"^(\d+)$"))]
        max_total_unready_percentage: String,
        /// The age from which pods without a node are counted, such as 10s or 1m.
        #[schemars(extend("default" = "0s"))]
        new_pod_scale_up_delay: String,
        /// The number of nodes that may be unready whatever their share.
        #[schemars(extend("default" = "3", "pattern" = r"^(\d+)$"))]
        ok_total_unready_count: String,
        /// How long after growth nothing is removed, in minutes, such as 10m.
        #[schemars(extend("default" = "10m", "pattern" = r"^(\d+)m$"))]
        scale_down_delay_after_add: String,
        /// How long after the deletion of a node nothing is removed, in seconds, such as 10s.
        #[schemars(extend("default" = "10s", "pattern" = r"^(\d+)s$"))]
        scale_down_delay_after_delete: String,
        /// How long after a failed removal nothing is removed, in minutes, such as 3m.
        #[schemars(extend("default" = "3m", "pattern" = r"^(\d+)m$"))]
        scale_down_delay_after_failure: String,
        /// How long a node is unneeded before it is removed, in minutes, such as 10m.
        #[schemars(extend("default" = "10m", "pattern" = r"^(\d+)m$"))]
        scale_down_unneeded_time: String,
        /// How long an unready node is unneeded before it is removed, in minutes, such as 20m.
        #[schemars(extend("default" = "20m", "pattern" = r"^(\d+)m$"))]
        scale_down_unready_time: String,
        /// The share of a node's capacity, from 0 to 1, below which it is unneeded.
        #[schemars(extend("default" = "0.5"))]
        scale_down_utilization_threshold: String,
        /// How often the autoscaler looks, in seconds, such as 10s.
        #[schemars(extend("default" = "10s", "pattern" = r"^(\d+)s$"))]
        scan_interval: String,
        /// Whether nodes with pods that use local storage are kept.
        #[schemars(extend("default" = "false", "enum" = ["true", "false"]))]
        skip_nodes_with_local_storage: String,
        /// Whether nodes with pods of kube-system are kept.
        #[schemars(extend("default" = "true", "enum" = ["true", "false"]))]
        skip_nodes_with_system_pods: String,
    }
}
