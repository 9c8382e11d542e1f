//! The configuration of a node pool's kubelets and of their operating system.

use crate::object::object;

object! {
    /// The configuration of kubelets, as far as AKS lets it be chosen.
    KubeletConfig {
        /// Sysctls that pods may set although they are unsafe: kernel.sem, and names or patterns that begin with
        /// kernel.shm, kernel.msg, fs.mqueue. or net.
        allowed_unsafe_sysctls: Vec<String>,
        /// The maximum number of log files of a container, at least 2.
        #[schemars(range(min = 2))]
        container_log_max_files: i64,
        /// The size in MB at which a container's log file is rotated.
        #[serde(rename = "containerLogMaxSizeMB")]
        container_log_max_size_mb: i64,
        /// Whether the limits of containers on processor time are enforced.
        cpu_cfs_quota: bool,
        /// The period of that limit in milliseconds, such as 100ms.
        cpu_cfs_quota_period: String,
        /// The CPU manager's policy: none, or static, which gives processors to one container alone.
        #[schemars(extend("enum" = ["none", "static"]))]
        cpu_manager_policy: String,
        /// Whether a kubelet refuses to start on a node with swap.
        fail_swap_on: bool,
        /// The disk usage in percent above which unused images are always removed.
        #[schemars(range(min = 0, max = 100))]
        image_gc_high_threshold: i64,
        /// The disk usage in percent below which no image is removed; at most imageGcHighThreshold.
        #[schemars(range(min = 0, max = 100))]
        image_gc_low_threshold: i64,
        /// The maximum number of processes of a pod, or -1 for no limit.
        #[schemars(range(min = -1))]
        pod_max_pids: i64,
        /// The topology manager's policy.
        #[schemars(extend("enum" = ["none", "best-effort", "restricted", "single-numa-node"]))]
        topology_manager_policy: String,
    }

    /// The configuration of the nodes' Linux, as far as AKS lets it be chosen.
    LinuxOsConfig {
        /// The size in MB of the swap file on each node. It needs kubeletConfig.failSwapOn to be false.
        #[serde(rename = "swapFileSizeMB")]
        #[schemars(range(min = 1))]
        swap_file_size_mb: i64,
        /// Parameters of the kernel.
        sysctls: Sysctls,
        /// When the kernel compacts memory to make huge pages.
        #[schemars(extend("enum" = ["always", "defer", "defer+madvise", "madvise", "never"]))]
        transparent_huge_page_defrag: String,
        /// Which memory is in transparent huge pages.
        #[schemars(extend("enum" = ["always", "madvise", "never"]))]
        transparent_huge_page_enabled: String,
    }

    /// Parameters of the kernel, with the ranges that AKS permits.
    Sysctls {
        /// fs.aio-max-nr: asynchronous I/O requests of the whole node.
        #[schemars(range(min = 65_536, max = 6_553_500))]
        fs_aio_max_nr: i64,
        /// fs.file-max: open files of the whole node.
        #[schemars(range(min = 8_192, max = 12_000_500))]
        fs_file_max: i64,
        /// fs.inotify.max_user_watches: watched files of a user.
        #[schemars(range(min = 781_250, max = 2_097_152))]
        fs_inotify_max_user_watches: i64,
        /// fs.nr_open: open files of a process.
        #[schemars(range(min = 8_192, max = 20_000_500))]
        fs_nr_open: i64,
        /// kernel.threads-max: threads of the whole node.
        #[schemars(range(min = 20, max = 513_785))]
        kernel_threads_max: i64,
        /// net.core.netdev_max_backlog: received packets that wait for the kernel.
        #[schemars(range(min = 1_000, max = 3_240_000))]
        net_core_netdev_max_backlog: i64,
        /// net.core.optmem_max: the ancillary buffer of a socket, in bytes.
        #[schemars(range(min = 20_480, max = 4_194_304))]
        net_core_optmem_max: i64,
        /// net.core.rmem_default: the receive buffer of a socket, in bytes.
        #[schemars(range(min = 212_992, max = 134_217_728))]
        net_core_rmem_default: i64,
        /// net.core.rmem_max: the largest receive buffer of a socket, in bytes.
        #[schemars(range(min = 212_992, max = 134_217_728))]
        net_core_rmem_max: i64,
        /// net.core.somaxconn: connections that wait for a listening socket.
        #[schemars(range(min = 4_096, max = 3_240_000))]
        net_core_somaxconn: i64,
        /// net.core.wmem_default: the send buffer of a socket, in bytes.
        #[schemars(range(min = 212_992, max = 134_217_728))]
        net_core_wmem_default: i64,
        /// net.core.wmem_max: the largest send buffer of a socket, in bytes.
        #[schemars(range(min = 212_992, max = 134_217_728))]
        net_core_wmem_max: i64,
        /// net.ipv4.ip_local_port_range: the first port of outgoing connections, from 1024 to 60999, a space, and the
        /// last one, from 32768 to 65000.
        #[serde(rename = "netIpv4IPLocalPortRange")]
        net_ipv4_ip_local_port_range: String,
        /// net.ipv4.neigh.default.gc_thresh1: entries of the ARP cache that are never removed.
        #[schemars(range(min = 128, max = 80_000))]
        net_ipv4_neigh_default_gc_thresh1: i64,
        /// net.ipv4.neigh.default.gc_thresh2: entries of the ARP cache above which some are removed soon.
        #[schemars(range(min = 512, max = 90_000))]
        net_ipv4_neigh_default_gc_thresh2: i64,
        /// net.ipv4.neigh.default.gc_thresh3: the largest number of entries of the ARP cache.
        #[schemars(range(min = 1_024, max = 100_000))]
        net_ipv4_neigh_default_gc_thresh3: i64,
        /// net.ipv4.tcp_fin_timeout: how many seconds an orphaned connection waits for its end.
        #[serde(rename = "netIpv4TCPFinTimeout")]
        #[schemars(range(min = 5, max = 120))]
        net_ipv4_tcp_fin_timeout: i64,
        /// net.ipv4.tcp_keepalive_probes: unanswered probes after which a connection is broken.
        #[serde(rename = "netIpv4TCPKeepaliveProbes")]
        #[schemars(range(min = 1, max = 15))]
        net_ipv4_tcp_keepalive_probes: i64,
        /// net.ipv4.tcp_keepalive_time: seconds before the first probe of an idle connection.
        #[serde(rename = "netIpv4TCPKeepaliveTime")]
        #[schemars(range(min = 30, max = 432_000))]
        net_ipv4_tcp_keepalive_time: i64,
        /// net.ipv4.tcp_max_syn_backlog: connection requests that are not acknowledged yet.
        #[serde(rename = "netIpv4TCPMaxSynBacklog")]
        #[schemars(range(min = 128, max = 3_240_000))]
        net_ipv4_tcp_max_syn_backlog: i64,
        /// net.ipv4.tcp_max_tw_buckets: connections that wait after their end.
        #[serde(rename = "netIpv4TCPMaxTwBuckets")]
        #[schemars(range(min = 8_000, max = 1_440_000))]
        net_ipv4_tcp_max_tw_buckets: i64,
        /// net.ipv4.tcp_tw_reuse: whether a new connection may use one that waits after its end.
        #[serde(rename = "netIpv4TCPTwReuse")]
        net_ipv4_tcp_tw_reuse: bool,
        /// net.ipv4.tcp_keepalive_intvl: seconds between probes.
        #[serde(rename = "netIpv4TCPkeepaliveIntvl")]
        #[schemars(range(min = 1, max = 75))]
        net_ipv4_tcp_keepalive_intvl: i64,
        /// net.netfilter.nf_conntrack_buckets: the size of the table of tracked connections.
        #[schemars(range(min = 65_536, max = 147_456))]
        net_netfilter_nf_conntrack_buckets: i64,
        /// net.netfilter.nf_conntrack_max: tracked connections.
        #[schemars(range(min = 131_072, max = 1_048_576))]
        net_netfilter_nf_conntrack_max: i64,
        /// vm.max_map_count: memory maps of a process.
        #[schemars(range(min = 65_530, max = 262_144))]
        vm_max_map_count: i64,
        /// vm.swappiness: how readily memory is moved to swap.
        #[schemars(range(min = 0, max = 100))]
        vm_swappiness: i64,
        /// vm.vfs_cache_pressure: how readily caches of directories are freed.
        #[schemars(range(min = 1, max = 500))]
        vm_vfs_cache_pressure: i64,
    }
}
