//! Pod CIDRs on the command line: who assigns them to nodes, and who writes routes to them.

use cloud::MaskSizes;
use controllers::{RangeOptions, check_mask};
use ipnet::IpNet;

use super::{CommandLine, Problem};

/// The default masks of nodes' ranges, as in kube-controller-manager.
const DEFAULT_MASKS: MaskSizes = MaskSizes { v4: 24, v6: 64 };

/// A range that fits all masks, for a remedy that is always valid.
const EXAMPLE: &str = "--cluster-cidr=10.244.0.0/16";

/// The handling of pod CIDRs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges {
    /// The cluster's ranges, at most one of each family.
    pub cluster: Vec<IpNet>,
    /// Whether routes to the ranges of nodes are written.
    pub routes: bool,
    /// How nodes get their ranges, if from this program.
    pub ipam: Option<RangeOptions>,
    /// Entries of `--service-cluster-ip-range` that cannot be parsed: a warning, as in the program that this one
    /// replaces.
    pub unreadable: Vec<String>,
}

impl Ranges {
    /// Adds ranges that are not assigned to nodes.
    #[must_use]
    pub fn without(mut self, reserved: &[IpNet]) -> Self {
        if let Some(ipam) = &mut self.ipam {
            ipam.reserved.extend(reserved);
        }
        self
    }
}

/// The entries of a list of ranges, each parsed or not.
fn entries(list: &str) -> Vec<Result<IpNet, String>> {
    let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| entry.parse().map(|range: IpNet| range.trunc()).map_err(|_| entry.to_owned()))
        .collect()
}

/// The first range of each family.
fn one_of_each(ranges: &[IpNet]) -> Vec<IpNet> {
    let mut kept: Vec<IpNet> = Vec::new();
    for range in ranges {
        if !kept.iter().any(|other| other.addr().is_ipv4() == range.addr().is_ipv4()) {
            kept.push(*range);
        }
    }
    kept
}

fn list(flag: &str, ranges: &[IpNet]) -> String {
    let texts: Vec<String> = ranges.iter().map(ToString::to_string).collect();
    format!("--{flag}={}", texts.join(","))
}

impl CommandLine {
    /// Whether routes are requested. By default they are if the cluster's ranges are known.
    fn asks_for_routes(&self) -> bool {
        let flags = &self.flags;
        let asked = flags.configure_cloud_routes.unwrap_or(!flags.cluster_cidr.is_empty());
        asked && self.enabled("node-route-controller")
    }

    /// Returns the handling of pod CIDRs.
    ///
    /// # Errors
    /// The invalid flags, each with its remedy. Unused flags are not validated.
    pub fn ranges(&self) -> Result<Ranges, Vec<Problem>> {
        let flags = &self.flags;
        let routes = self.asks_for_routes();
        let gives = flags.allocate_node_cidrs && self.enabled("node-ipam");
        if !routes && !gives {
            return Ok(Ranges::default());
        }
        let mut problems = Vec::new();
        let cluster = self.cluster_ranges(gives, &mut problems);
        let (mut unreadable, mut ipam) = (Vec::new(), None);
        if gives {
            let reserved = self.service_ranges(&cluster, &mut unreadable, &mut problems);
            let masks = self.masks(&cluster, &mut problems);
            ipam = Some(RangeOptions { cluster: cluster.clone(), reserved, masks });
        }
        if problems.is_empty() { Ok(Ranges { cluster, routes, ipam, unreadable }) } else { Err(problems) }
    }

    fn cluster_ranges(&self, gives: bool, problems: &mut Vec<Problem>) -> Vec<IpNet> {
        let given = &self.flags.cluster_cidr;
        let entries = entries(given);
        let readable: Vec<IpNet> = entries.iter().filter_map(|entry| entry.as_ref().ok()).copied().collect();
        let kept = one_of_each(&readable);
        let needed_by = match gives {
            true => "--allocate-node-cidrs=true gives nodes their pod ranges out of it",
            false => "--configure-cloud-routes=true writes routes into it alone",
        };
        let wrong = entries.iter().filter_map(|entry| entry.as_ref().err()).next();
        let reason = if let Some(wrong) = wrong {
            format!("{wrong:?} is no range of addresses, such as 10.244.0.0/16")
        } else if kept.is_empty() {
            format!("no range is given, and {needed_by}")
        } else if kept.len() < readable.len() {
            "there may be one range of each family".to_owned()
        } else {
            return kept;
        };
        let (remedy, note) = match kept.is_empty() {
            true => (EXAMPLE.to_owned(), ", or whatever range the pods of this cluster have"),
            false => (list("cluster-cidr", &kept), ", or whatever ranges the pods of this cluster have"),
        };
        problems.push(Problem::new("cluster-cidr", given, reason, &[&remedy]).note(note));
        kept
    }

    fn service_ranges(
        &self,
        cluster: &[IpNet],
        unreadable: &mut Vec<String>,
        problems: &mut Vec<Problem>,
    ) -> Vec<IpNet> {
        let given = &self.flags.service_cluster_ip_range;
        let entries = entries(given);
        let count = entries.len();
        let mut readable = Vec::new();
        for entry in entries {
            match entry {
                Ok(range) => readable.push(range),
                Err(text) => unreadable.push(text),
            }
        }
        let mut kept = one_of_each(&readable);
        let swallowed = cluster.iter().find(|range| kept.iter().any(|services| services.contains(*range)));
        let reason = if count > 2 {
            "--service-cluster-ip-range can not contain more than two entries".to_owned()
        } else if kept.len() < readable.len() {
            "there may be one range of each family".to_owned()
        } else if let Some(pods) = swallowed {
            format!("it holds all of {}, and leaves no address to pods", list("cluster-cidr", &[*pods]))
        } else {
            return readable;
        };
        kept.retain(|services| !cluster.iter().any(|range| services.contains(range)));
        let remedy = list("service-cluster-ip-range", &kept);
        let note = ", or whatever ranges the Services of this cluster have";
        problems.push(Problem::new("service-cluster-ip-range", given, reason, &[&remedy]).note(note));
        kept
    }

    /// Given flags without an effect because of other flags.
    pub(super) fn unheeded(&self, given: impl Fn(&str) -> bool) -> Vec<(Vec<&'static str>, &'static str)> {
        const MASKS: [&str; 2] = ["node-cidr-mask-size-ipv4", "node-cidr-mask-size-ipv6"];
        let flags = &self.flags;
        if !flags.allocate_node_cidrs || !self.enabled("node-ipam") {
            let of_ipam = [MASKS[0], MASKS[1], "cidr-allocator-type", "service-cluster-ip-range"];
            let idle: Vec<&str> = of_ipam.into_iter().filter(|flag| given(flag)).collect();
            let reason =
                "this program gives nodes no ranges for their pods: that takes --allocate-node-cidrs=true";
            return if idle.is_empty() { Vec::new() } else { vec![(idle, reason)] };
        }
        if flags.cidr_allocator_type == "CloudAllocator" {
            let idle: Vec<&str> = MASKS.into_iter().filter(|flag| given(flag)).collect();
            let reason = "with --cidr-allocator-type=CloudAllocator scale sets and availability sets say how large \
                          ranges are";
            return if idle.is_empty() { Vec::new() } else { vec![(idle, reason)] };
        }
        let readable: Vec<IpNet> = entries(&flags.cluster_cidr).into_iter().filter_map(Result::ok).collect();
        let has = |is_v4: bool| readable.iter().any(|range| range.addr().is_ipv4() == is_v4);
        let of_family = [
            (MASKS[0], true, "--cluster-cidr has no IPv4 range"),
            (MASKS[1], false, "--cluster-cidr has no IPv6 range"),
        ];
        let idle = of_family.into_iter().filter(|(flag, is_v4, _)| given(flag) && !has(*is_v4));
        idle.map(|(flag, _, reason)| (vec![flag], reason)).collect()
    }

    /// The masks of all nodes; `None` if the sets of machines have them.
    fn masks(&self, cluster: &[IpNet], problems: &mut Vec<Problem>) -> Option<MaskSizes> {
        let flags = &self.flags;
        match flags.cidr_allocator_type.as_str() {
            "RangeAllocator" => {}
            "CloudAllocator" => return None,
            kind => {
                let reason = "is neither RangeAllocator nor CloudAllocator";
                let remedy = "--cidr-allocator-type=RangeAllocator";
                problems.push(Problem::new("cidr-allocator-type", kind, reason, &[remedy]));
            }
        }
        let or = |mask: u8, default: u8| if mask == 0 { default } else { mask };
        let masks = MaskSizes {
            v4: or(flags.node_cidr_mask_size_ipv4, DEFAULT_MASKS.v4),
            v6: or(flags.node_cidr_mask_size_ipv6, DEFAULT_MASKS.v6),
        };
        for range in cluster {
            let (flag, mask, default) = match range.addr().is_ipv4() {
                true => ("node-cidr-mask-size-ipv4", masks.v4, DEFAULT_MASKS.v4),
                false => ("node-cidr-mask-size-ipv6", masks.v6, DEFAULT_MASKS.v6),
            };
            let is_given = match range.addr().is_ipv4() {
                true => flags.node_cidr_mask_size_ipv4 != 0,
                false => flags.node_cidr_mask_size_ipv6 != 0,
            };
            if let Err(problem) = check_mask(*range, mask) {
                if !is_given && range.prefix_len() > default {
                    problems.push(self.too_small(*range, cluster, default));
                    continue;
                }
                let fits = |mask: &u8| check_mask(*range, *mask).is_ok();
                // Eight bits are 256 nodes.
                let within = range.prefix_len().saturating_add(8).min(range.max_prefix_len());
                let remedy = format!("--{flag}={}", Some(default).filter(fits).unwrap_or(within));
                let note = ", or another mask that leaves room for all nodes";
                problems.push(Problem::new(flag, mask, problem.to_string(), &[&remedy]).note(note));
            }
        }
        Some(masks)
    }

    /// A range that is too small for one node, with default masks.
    fn too_small(&self, range: IpNet, cluster: &[IpNet], mask: u8) -> Problem {
        // Eight bits are 256 nodes.
        let wider = IpNet::new(range.addr(), mask.saturating_sub(8)).map_or(range, |wider| wider.trunc());
        let ranges: Vec<IpNet> =
            cluster.iter().map(|other| if *other == range { wider } else { *other }).collect();
        let reason = format!("{range} has no room for one range of /{mask}, as each node gets it");
        let flag = if range.addr().is_ipv4() { "ipv4" } else { "ipv6" };
        let note = format!(
            ", or whatever larger range the pods of this cluster have, or set --node-cidr-mask-size-{flag}"
        );
        Problem::new("cluster-cidr", &self.flags.cluster_cidr, reason, &[&list("cluster-cidr", &ranges)])
            .note(note)
    }
}
