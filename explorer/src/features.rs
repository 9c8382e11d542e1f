//! The features of a Service: values of annotations and fields, what a manifest with them looks like, and
//! what must come of it.
//!
//! A [`Row`] has a value for each factor. What must come of it is written down from what is published of
//! annotations and fields, and not taken from the planner: two readers of one text have to agree.

mod expected;
mod manifest;

pub use expected::expectation;
pub(crate) use expected::{is_pinned, is_pinned_where_it_arrives};
pub use manifest::{given, leaves_to_kubernetes, manifest};

use crate::covering::{self, Space};

/// A value for each factor, by its place in [`FACTORS`]; 0 is the usual one.
pub type Row = Vec<usize>;

/// A field or annotation (or a few that belong together) and the values that are tried. The first is the
/// usual one; those that begin with `!` are mistakes, for which a Service is refused.
#[derive(Debug)]
pub struct Factor {
    /// What it is called.
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

/// What rightly stays changed when Services with these rows are gone: a subnet that takes private link services.
pub fn stays_changed(rows: &[Row]) -> Vec<String> {
    let is_linked = |row: &Row| value(row, "private-link-service") != "no";
    if rows.iter().any(is_linked) { vec!["network".to_owned()] } else { Vec::new() }
}

/// The value of a factor in a row.
///
/// # Panics
/// Nothing is called that.
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

/// A row with nothing but usual values.
pub fn usual() -> Row {
    vec![0; FACTORS.len()]
}

/// The features of a row that are not usual, as `factor=value`.
pub fn features(row: &[usize]) -> Vec<String> {
    let unusual = row.iter().enumerate().filter(|(_, number)| **number != 0);
    unusual
        .map(|(place, number)| format!("{}={}", FACTORS[place].name, FACTORS[place].values[*number]))
        .collect()
}

/// The row with these features.
///
/// # Errors
/// A feature that is not known.
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
    /// The rows that have it, which are left out.
    pub holds: fn(&[usize]) -> bool,
    /// Features with which it is seen.
    pub seen_with: &'static [&'static str],
}

/// What fails today. An entry whose bug is mended fails the tests until it is taken out.
pub const KNOWN: &[Known] = &[];

/// Whether a row is known to fail.
pub fn is_known(row: &[usize]) -> bool {
    KNOWN.iter().any(|known| (known.holds)(row))
}

/// Whether what must come of a row can be said and tried. What cannot stands here with its reason.
pub fn is_possible(row: &[usize]) -> bool {
    let is = |factor: &str, wanted: &str| value(row, factor) == wanted;
    let has =
        |factor: &str| row[FACTORS.iter().position(|known| known.name == factor).unwrap_or_default()] != 0;
    // kube-proxy's port answers `/healthz` alone.
    let (protocol, path) = expected::first_probe(row);
    let unanswered = is("probe-port", "10256") && protocol != "tcp" && path != "/healthz";
    // The label would stay on a public IP that is somebody else's, which is right, and in the way of the
    // comparison with what was there before.
    let label_stays = has("dns-label") && has("public-ip");
    // A field can hold one address, of one family; which one is asked for then is tried by the corpus.
    let half_an_address =
        is("public-ip", "address-in-field") && !["IPv4", "IPv6"].contains(&value(row, "families"));
    // The missing ones are missing only where they are looked for.
    let not_missed =
        (is("public-ip", "!missing") && is_internal(row)) || (is("subnet", "!missing") && !is_internal(row));
    // Without a rule nothing is left of a Service with one port.
    let nothing_left = is("first-port", "no-rule")
        && ["tcp", "udp", "tcp-and-udp"].contains(&value(row, "ports"))
        && !(is_internal(row) && is("high-availability-ports", "yes"));
    // Azure gives the addresses of a prefix the prefix's own tags.
    let tags_of_prefix = has("ip-tags") && has("prefix");
    // Azure takes one such rule for each pool, because nothing floats there; the corpus has one.
    let second_of_its_kind =
        is("high-availability-ports", "yes") && is_internal(row) && !is("families", "IPv4");
    // Kubernetes refuses a health check port that nobody asks.
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
