//! The features of a Service: values of annotations and fields, the manifest with them, and the expected result.
//!
//! A [`Row`] has a value for each factor. The expected result is derived from the public documentation of annotations
//! and fields, independently of the planner: two readers of one text have to agree.

mod expected;
mod manifest;

pub use expected::expectation;
pub(crate) use expected::{is_pinned, is_pinned_where_it_arrives};
pub use manifest::{given, leaves_to_kubernetes, manifest};

use crate::covering::{self, Space};

/// A value for each factor, by its position in [`FACTORS`]; 0 is the default.
pub type Row = Vec<usize>;

/// A field or annotation (or a group of them) and the values to try. The first is the default; those that begin with
/// `!` are mistakes, for which a Service is refused.
#[derive(Debug)]
pub struct Factor {
    /// Its name.
    pub name: &'static str,
    /// Its values.
    pub values: &'static [&'static str],
}

macro_rules! factors {
    ($($name:literal: $($value:literal)+;)+) => {
        /// All factors.
        pub const FACTORS: &[Factor] = &[$(Factor { name: $name, values: &[$($value),+] }),+];
    };
}

factors! {
    "placement": "external" "internal" "internal-in-capitals";
    "families": "IPv4" "IPv6" "dual" "prefer-dual" "dual-IPv6-first";
    "ports": "tcp" "udp" "tcp-and-udp" "two-tcp" "tcp-then-other-udp";
    "policy": "Cluster" "Local";
    "affinity": "None" "ClientIP";
    "source-ranges": "none" "network" "single-address" "everybody" "both-families" "overlapping";
    "allowed-ranges": "none" "networks" "core-annotation" "invalid";
    "service-tags": "none" "one" "two-in-other-case";
    "deny-all": "no" "yes";
    "security-rules": "yes" "no";
    "idle-timeout": "none" "4" "100" "!3" "!x";
    "tcp-reset": "on" "off";
    "high-availability-ports": "no" "yes";
    "floating-ip": "on" "off";
    "probe-protocol": "none" "http" "HTTPS" "gopher";
    "probe-timing": "none" "10s-x3" "x4-of-all";
    "probe-path": "none" "/healthz";
    "probe-port": "none" "10256" "own";
    "first-probe-protocol": "none" "HTTP" "tcp" "gopher";
    "first-probe-interval": "none" "7";
    "first-probe-path": "none" "/ready";
    "first-port": "plain" "no-rule" "no-probe";
    "app-protocol": "none" "http";
    "public-ip": "own" "named" "named-by-plain-key" "named-by-IPv6-key" "address" "address-in-field" "!missing";
    "prefix": "no" "yes" "by-plain-key" "by-IPv6-key";
    "pip-tags": "none" "some";
    "ip-tags": "none" "some";
    "dns-label": "none" "some";
    "resource-group": "cluster" "other";
    "additional-addresses": "none" "one" "!garbage";
    "subnet": "none" "second" "!missing";
    "node-ports": "yes" "no" "chosen";
    "target-port": "name" "number" "none";
    "health-check-port": "none" "chosen" "chosen-and-timed";
    "mode": "none" "auto" "scale-set";
    "balancer-names": "none" "two";
    "shared-security-rule": "none" "yes";
    "private-link-service": "no" "yes" "second-subnet";
}

/// The resources that may stay changed after Services with these rows are deleted: a subnet that admits private link
/// services.
pub fn stays_changed(rows: &[Row]) -> Vec<String> {
    let is_linked = |row: &Row| value(row, "private-link-service") != "no";
    if rows.iter().any(is_linked) { vec!["network".to_owned()] } else { Vec::new() }
}

/// The value of a factor in a row.
///
/// # Panics
/// There is no such factor.
pub fn value<'a>(row: &[usize], factor: &str) -> &'a str {
    let place = FACTORS.iter().position(|known| known.name == factor);
    let place = place.unwrap_or_else(|| panic!("no factor is called {factor}"));
    FACTORS[place].values[row[place]]
}

/// Whether a Service asks for a private address.
pub(crate) fn is_internal(row: &[usize]) -> bool {
    value(row, "placement") != "external"
}

/// Whether a value is a mistake.
pub fn is_mistake(factor: usize, number: usize) -> bool {
    FACTORS[factor].values[number].starts_with('!')
}

/// A row of defaults.
pub fn usual() -> Row {
    vec![0; FACTORS.len()]
}

/// The features of a row that differ from the defaults, as `factor=value`.
pub fn features(row: &[usize]) -> Vec<String> {
    let unusual = row.iter().enumerate().filter(|(_, number)| **number != 0);
    unusual
        .map(|(place, number)| format!("{}={}", FACTORS[place].name, FACTORS[place].values[*number]))
        .collect()
}

/// The row with these features.
///
/// # Errors
/// An unknown feature.
pub fn with_features<'a>(features: impl IntoIterator<Item = &'a str>) -> Result<Row, String> {
    let mut row = usual();
    for feature in features {
        let unknown = || format!("`{feature}` is no feature");
        let (name, value) = feature.split_once('=').ok_or_else(unknown)?;
        let place = FACTORS.iter().position(|factor| factor.name == name).ok_or_else(unknown)?;
        let number = FACTORS[place].values.iter().position(|known| *known == value).ok_or_else(unknown)?;
        row[place] = number;
    }
    Ok(row)
}

/// Features that fail together today.
#[derive(Debug)]
pub struct Known {
    /// The bug.
    pub bug: &'static str,
    /// Whether a row shows the bug; such rows are left out.
    pub holds: fn(&[usize]) -> bool,
    /// Features that show the bug.
    pub seen_with: &'static [&'static str],
}

/// What fails today. An entry whose bug is fixed fails the tests until it is removed.
pub const KNOWN: &[Known] = &[];

/// Whether a row is known to fail.
pub fn is_known(row: &[usize]) -> bool {
    KNOWN.iter().any(|known| (known.holds)(row))
}

/// Whether the result for a row can be predicted and tested. Each exclusion has its reason here.
pub fn is_possible(row: &[usize]) -> bool {
    let is = |factor: &str, wanted: &str| value(row, factor) == wanted;
    let has =
        |factor: &str| row[FACTORS.iter().position(|known| known.name == factor).unwrap_or_default()] != 0;
    // kube-proxy's port only answers `/healthz`.
    let (protocol, path) = expected::first_probe(row);
    let unanswered = is("probe-port", "10256") && protocol != "tcp" && path != "/healthz";
    // The label would stay on another owner's public IP, which is correct, but disturbs the comparison with the
    // previous state.
    let label_stays = has("dns-label") && has("public-ip");
    // A field can contain one address, of one family; the corpus tests which one is requested then.
    let half_an_address =
        is("public-ip", "address-in-field") && !["IPv4", "IPv6"].contains(&value(row, "families"));
    // A missing resource only matters if it is looked up.
    let not_missed =
        (is("public-ip", "!missing") && is_internal(row)) || (is("subnet", "!missing") && !is_internal(row));
    // Without a rule nothing is left of a Service with one port.
    let nothing_left = is("first-port", "no-rule")
        && ["tcp", "udp", "tcp-and-udp"].contains(&value(row, "ports"))
        && !(is_internal(row) && is("high-availability-ports", "yes"));
    // Azure gives the addresses of a prefix the prefix's own tags.
    let tags_of_prefix = has("ip-tags") && has("prefix");
    // Azure accepts one such rule per pool, because there is no floating IP there; the corpus has one.
    let second_of_its_kind =
        is("high-availability-ports", "yes") && is_internal(row) && !is("families", "IPv4");
    // Kubernetes refuses a health check port that is not used.
    let nobody_asks = has("health-check-port") && !is("policy", "Local");
    !(second_of_its_kind
        || nobody_asks
        || unanswered
        || label_stays
        || half_an_address
        || not_missed
        || nothing_left
        || tags_of_prefix)
}

/// Rows with all pairs of values, without those that are known to fail.
pub fn pairwise() -> Vec<Row> {
    let values = FACTORS.iter().map(|factor| factor.values.len()).collect();
    let is_possible = |row: &[usize]| is_possible(row) && !is_known(row);
    covering::rows(&Space { values, is_mistake: &is_mistake, is_possible: &is_possible })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_what_its_features_say() {
        let row = with_features(["placement=internal", "idle-timeout=!3"]).unwrap();
        assert_eq!(features(&row), ["placement=internal", "idle-timeout=!3"]);
        assert!(is_internal(&row));
        assert!(with_features(["placement=orbit"]).unwrap_err().contains("orbit"));
    }

    #[test]
    fn all_pairs_fit_into_a_few_hundred_services() {
        let rows = pairwise();
        assert!((60..400).contains(&rows.len()), "{} rows", rows.len());
    }
}
