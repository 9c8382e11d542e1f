//! The features of a Service: values of annotations and fields, the manifest with them, and the expected result.
//!
//! A [`Row`] has a value for each factor. The expected result is derived from the public documentation of annotations
//! and fields, independently of the planner: two readers of one text have to agree.

mod expected;
mod factors;
mod manifest;

pub use expected::expectation;
pub(crate) use expected::{is_pinned, is_pinned_where_it_arrives};
pub use factors::{FACTORS, Factor, Row, features, is_mistake, usual, value, with_features};
pub(crate) use factors::{as_features, is_internal};
pub use manifest::{initial_resources, leaves_to_kubernetes, manifest};

use crate::covering::{self, Space};

/// The resources that may stay changed after Services with these rows are deleted: a subnet that admits private link
/// services.
pub fn stays_changed(rows: &[Row]) -> Vec<String> {
    let is_linked = |row: &Row| value(row, "private-link-service") != "no";
    if rows.iter().any(is_linked) { vec!["network".to_owned()] } else { Vec::new() }
}

/// Features that fail together today.
#[derive(Debug)]
pub struct KnownBug {
    /// The bug.
    pub bug: &'static str,
    /// Whether a row shows the bug; such rows are left out.
    pub holds: fn(&[usize]) -> bool,
    /// Features that show the bug.
    pub shown_by: &'static [&'static str],
}

/// What fails today. An entry whose bug is fixed fails the tests until it is removed.
pub const KNOWN: &[KnownBug] = &[];

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
