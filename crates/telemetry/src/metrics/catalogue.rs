//! Holds the table of `docs/metrics.md` against what a program serves, for the tests of programs.

use std::collections::{BTreeMap, BTreeSet};

use super::Metrics;

/// The page with the table.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");

/// A family: its type, and the names of its labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Family {
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    /// The labels, without `le`.
    pub labels: BTreeSet<String>,
}

/// The families of a scrape's text, by the name that queries use.
pub fn families(text: &str) -> BTreeMap<String, Family> {
    let mut families = BTreeMap::<String, Family>::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, ""));
            let suffix = if kind == "counter" { "_total" } else { "" };
            let family = Family { kind: kind.to_owned(), labels: BTreeSet::new() };
            families.insert(format!("{name}{suffix}"), family);
        } else if !line.starts_with('#')
            && let Some((name, rest)) = line.split_once('{')
        {
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
            let name = if families.contains_key(name) { name } else { base.unwrap_or(name) };
            if let Some(family) = families.get_mut(name) {
                family.labels.extend(labels(rest).filter(|label| label != "le"));
            }
        }
    }
    families
}

/// The names before `="…"`. Values hold no `="`, but for escaped quotes.
fn labels(rest: &str) -> impl Iterator<Item = String> {
    rest.split("=\"")
        .map(|part| part.rsplit([',', '{']).next().unwrap_or_default().to_owned())
        .filter(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// The families that the page states of a program (`ccm` or `capz`).
fn documented(page: &str, program: &str) -> BTreeMap<String, Family> {
    let words = |cell: &str| -> Vec<String> {
        cell.split(',')
            .map(|word| word.trim().trim_matches('`').to_owned())
            .filter(|it| !it.is_empty())
            .collect()
    };
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.split('|').map(str::trim).collect();
        let [name, kind, labels, programs, ..] = cells.as_slice() else { return None };
        let family = Family { kind: (*kind).to_owned(), labels: words(labels).into_iter().collect() };
        words(programs).iter().any(|it| it == program).then(|| (name.trim_matches('`').to_owned(), family))
    });
    rows.collect()
}

/// Asserts that a program whose metrics were all used serves exactly what the page states of it.
///
/// # Panics
/// Something differs, or a registered metric was not used.
pub fn assert_documented(metrics: &Metrics, program: &str) {
    let served = families(&metrics.encode());
    for name in metrics.registered() {
        let used = served.contains_key(&name) || served.contains_key(&format!("{name}_total"));
        assert!(used, "{name} is registered, and this test does not use it");
    }
    let page = std::fs::read_to_string(PAGE).unwrap_or_default();
    let stated = documented(&page, program);
    let names: BTreeSet<_> = stated.keys().chain(served.keys()).collect();
    let differing: Vec<String> = names
        .into_iter()
        .filter(|name| stated.get(*name) != served.get(*name))
        .map(|name| format!("{name}: stated {:?}, served {:?}", stated.get(name), served.get(name)))
        .collect();
    assert!(
        differing.is_empty(),
        "docs/metrics.md differs from what {program} serves:\n{}",
        differing.join("\n")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_the_names_of_queries_and_all_labels() {
        let text = "# HELP a A.\n# TYPE a counter\na_total{x=\"1,y=2\"} 1\na_total{z=\"\"} 1\n\
                    # HELP b B.\n# TYPE b histogram\nb_sum{c=\"d\"} 1\nb_bucket{le=\"1\",c=\"d\"} 1\n\
                    # TYPE c_count gauge\nc_count{e=\"f\"} 1\n# EOF\n";
        let families = families(text);
        let family = |kind: &str, labels: &[&str]| Family {
            kind: kind.to_owned(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        };
        assert_eq!(families["a_total"], family("counter", &["x", "z"]));
        assert_eq!(families["b"], family("histogram", &["c"]));
        assert_eq!(families["c_count"], family("gauge", &["e"]));
    }

    #[test]
    fn rows_are_read_for_the_programs_that_they_name() {
        let page = "| `a_total` | counter | `x`, `y` | ccm, capz | About it |\n| `b` | gauge | | capz | |\n";
        assert_eq!(documented(page, "ccm").keys().collect::<Vec<_>>(), ["a_total"]);
        assert_eq!(documented(page, "capz").len(), 2);
    }
}
