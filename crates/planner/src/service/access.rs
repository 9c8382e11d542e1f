//! Who may reach a Service: source ranges, service tags, deny-all.

use ipnet::IpNet;
use k8s::{Notice, ObjectKey, Service};

use super::annotations::Annotations;
use crate::model::annotation_keys::{self as keys, full_key};
use crate::model::{Family, Flavor};
use crate::outcome::Refusal;

/// The source tag of all clients outside the virtual network.
const INTERNET: &str = "Internet";

/// Who may reach a Service, as its owner wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// The valid items of `spec.loadBalancerSourceRanges`.
    pub source_ranges: Vec<IpNet>,
    /// The valid items of the two annotations.
    pub allowed_ranges: Vec<IpNet>,
    /// Items of `spec.loadBalancerSourceRanges` that are not networks.
    pub invalid_source_ranges: Vec<String>,
    /// Items of the annotations that are not networks.
    pub invalid_allowed_ranges: Vec<String>,
    /// Azure's service tags.
    pub service_tags: Vec<String>,
    /// Whether the owner asks to deny all other traffic.
    pub deny_annotation: bool,
    /// Whether the owner asks for no security rules at all.
    pub disabled: bool,
}

/// Parses a network whose host bits are zero. A bare address is not a network.
fn parse_network(text: &str) -> Option<IpNet> {
    let network: IpNet = text.parse().ok()?;
    (network.addr() == network.network()).then_some(network)
}

fn split<'a>(items: impl Iterator<Item = &'a str>, valid: &mut Vec<IpNet>, invalid: &mut Vec<String>) {
    for item in items {
        match parse_network(item) {
            Some(network) => valid.push(network),
            None => invalid.push(item.to_owned()),
        }
    }
}

impl Access {
    /// Reads the Service's access settings. Never fails; empty items are ignored.
    pub(crate) fn read(service: &Service) -> Self {
        let annotations = Annotations(service);
        let mut access = Self {
            service_tags: annotations.items(keys::ALLOWED_SERVICE_TAGS).map(str::to_owned).collect(),
            deny_annotation: annotations.flag(keys::DENY_ALL),
            disabled: annotations.flag(keys::DISABLE_SECURITY_RULE),
            ..Self::default()
        };
        let spec = service.spec.load_balancer_source_ranges.iter().map(|item| item.trim());
        split(
            spec.filter(|item| !item.is_empty()),
            &mut access.source_ranges,
            &mut access.invalid_source_ranges,
        );
        let annotated =
            annotations.items(keys::ALLOWED_IP_RANGES).chain(annotations.items(keys::SOURCE_RANGES));
        split(annotated, &mut access.allowed_ranges, &mut access.invalid_allowed_ranges);
        access
    }

    /// Refuses contradictory settings.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.source_ranges.is_empty() || self.allowed_ranges.is_empty() {
            return Ok(());
        }
        let list = |ranges: &[IpNet]| ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        Err(Refusal::TwoKindsOfRanges {
            source_ranges: list(&self.source_ranges),
            allowed_ranges: list(&self.allowed_ranges),
        })
    }

    fn has_invalid(&self) -> bool {
        !self.invalid_source_ranges.is_empty() || !self.invalid_allowed_ranges.is_empty()
    }

    /// Whether all other traffic is denied, also from inside the virtual network.
    pub fn denies_all_else(&self) -> bool {
        let any_valid = !self.source_ranges.is_empty() || !self.allowed_ranges.is_empty();
        !self.disabled && (self.has_invalid() || (self.deny_annotation && any_valid))
    }

    /// All ranges, without duplicates and merged where they are neighbours.
    fn aggregated(&self) -> Vec<IpNet> {
        let all: Vec<IpNet> = self.source_ranges.iter().chain(&self.allowed_ranges).copied().collect();
        IpNet::aggregate(&all)
    }

    /// The sources of one family's allow rules, one list per rule, in the order in which priorities are assigned: each
    /// service tag alone, then all ranges together.
    ///
    /// A `/0` range of one family allows all clients: the other family then gets the `Internet` tag unless it has
    /// ranges of its own.
    pub fn sources(&self, flavor: Flavor, family: Family) -> Vec<Vec<String>> {
        let ranges = self.aggregated();
        let mine: Vec<String> = ranges
            .iter()
            .filter(|range| Family::of(range.addr()) == family)
            .map(ToString::to_string)
            .collect();
        let everybody = ranges.iter().any(|range| range.prefix_len() == 0);
        let unrestricted = ranges.is_empty() && flavor == Flavor::External;
        let mut rules: Vec<Vec<String>> = self.service_tags.iter().map(|tag| vec![tag.clone()]).collect();
        if rules.is_empty() && !self.has_invalid() && mine.is_empty() && (unrestricted || everybody) {
            rules.push(vec![INTERNET.to_owned()]);
        }
        if !mine.is_empty() {
            rules.push(mine);
        }
        rules
    }

    /// The notices for the Service's owner.
    pub(crate) fn notices(&self, service: &ObjectKey) -> Vec<Notice> {
        let mut notices = Vec::new();
        let mut warn = |reason, message| {
            notices.push(Notice { service: service.clone(), warning: true, reason, message });
        };
        if !self.invalid_source_ranges.is_empty() {
            warn(
                "InvalidSourceRanges",
                format!(
                    "spec.loadBalancerSourceRanges: {} is not a network address such as 10.0.0.0/24; a rule that \
                     denies all other traffic is in force until it is corrected",
                    self.invalid_source_ranges.join(", ")
                ),
            );
        }
        if !self.invalid_allowed_ranges.is_empty() {
            warn(
                "InvalidAllowedIPRanges",
                format!(
                    "annotation {} or {}: {} is not a network address such as 10.0.0.0/24; a rule that denies \
                     all other traffic is in force until it is corrected",
                    full_key(keys::ALLOWED_IP_RANGES),
                    full_key(keys::SOURCE_RANGES),
                    self.invalid_allowed_ranges.join(", ")
                ),
            );
        }
        if !self.source_ranges.is_empty() && !self.service_tags.is_empty() {
            warn(
                "ConflictConfiguration",
                format!(
                    "spec.loadBalancerSourceRanges is set together with annotation {}: kube-proxy does not support \
                     service tags and drops their traffic; use annotation {} for the ranges",
                    full_key(keys::ALLOWED_SERVICE_TAGS),
                    full_key(keys::ALLOWED_IP_RANGES)
                ),
            );
        }
        notices
    }
}
