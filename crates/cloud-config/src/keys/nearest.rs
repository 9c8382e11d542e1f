//! The name that a misspelt one was meant to be.

/// The known name that is most similar to a misspelt one, if it is similar enough: at most a third of its letters, and
/// never more than three, differ (counted as insertions, deletions and replacements, without regard to case).
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).min(3);
    names
        .into_iter()
        .map(|name| (distance(&word.to_ascii_lowercase(), &name.to_ascii_lowercase()), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_finds_the_one_it_was_meant_to_be() {
        let names = ["vmType", "vnetName", "loadBalancerSku", "location"];
        for (word, found) in [
            ("loadBalancerSKU", Some("loadBalancerSku")),
            ("loadbalancersku", Some("loadBalancerSku")),
            ("loadBalancersSku", Some("loadBalancerSku")),
            ("vnetname", Some("vnetName")),
            ("vnName", Some("vnetName")),
            ("subnet", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, names), found, "{word}");
        }
    }
}
