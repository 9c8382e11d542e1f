//! How many data disks a machine takes, by the family of its size. Used only while Azure's list of sizes cannot be read.
//!
//! A row says for a family how the number grows with the number in the size's name. It is chosen to be at most what Azure's
//! pages of sizes say ("Sizes for virtual machines in Azure"): a machine with fewer disks than it could have works, one
//! with more does not.

/// A rule for sizes whose name begins with these letters.
struct Family {
    /// The letters before the number.
    letters: &'static [&'static str],
    /// The first and the last version; a name without one has version 1.
    versions: (u32, u32),
    /// Letters of features that a size of this rule has not got.
    without: &'static str,
    /// From which number on a size has how many disks, in rising order.
    steps: &'static [(u32, u32)],
}

const ANY: (u32, u32) = (1, u32::MAX);
/// The first row that fits decides.
const FAMILIES: &[Family] = &[
    // The number is a place in a list, not one of processors: D1 to D5 and, with more memory, D11 to D15.
    Family {
        letters: &["D", "DS"],
        versions: (1, 2),
        without: "",
        steps: &[(1, 4), (2, 8), (3, 16), (4, 32), (5, 64), (11, 8), (12, 16), (13, 32), (14, 64)],
    },
    Family {
        letters: &["G", "GS"],
        versions: (1, 1),
        without: "",
        steps: &[(1, 8), (2, 16), (3, 32), (4, 64)],
    },
    // The sixth generation of Intel's processors; those of AMD ("a") and Arm ("p") are as before.
    Family {
        letters: &["D", "E"],
        versions: (6, u32::MAX),
        without: "ap",
        steps: &[(2, 4), (4, 12), (8, 16), (16, 32), (96, 64)],
    },
    Family { letters: &["DC"], versions: (1, 2), without: "", steps: &[(1, 1), (2, 2), (4, 4), (8, 8)] },
    Family {
        letters: &["D", "E", "DC", "EC", "F", "FX", "L"],
        versions: ANY,
        without: "",
        steps: &[(1, 2), (2, 4), (4, 8), (8, 16), (16, 32)],
    },
    Family { letters: &["A"], versions: (2, 2), without: "", steps: &[(1, 2), (2, 4), (4, 8), (8, 16)] },
    Family {
        letters: &["B"],
        versions: ANY,
        without: "",
        steps: &[(1, 2), (2, 4), (4, 8), (8, 16), (16, 32)],
    },
    Family { letters: &["M"], versions: ANY, without: "", steps: &[(8, 8), (16, 16), (32, 32), (64, 64)] },
    Family { letters: &["ND"], versions: ANY, without: "", steps: &[(1, 8)] },
    Family {
        letters: &["NC", "NCC", "NV", "NG", "NP"],
        versions: ANY,
        without: "",
        steps: &[(1, 4), (18, 8), (48, 16), (96, 32)],
    },
    Family { letters: &["H", "HB", "HC", "HX"], versions: ANY, without: "", steps: &[(1, 4)] },
];

/// The families as rows of Markdown: letters, versions, and from which number on a size has how many disks.
pub fn markdown_rows() -> String {
    let mut text = String::new();
    for Family { letters, versions, without, steps } in FAMILIES {
        let letters = letters.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
        let versions = match *versions {
            ANY => "any".to_owned(),
            (first, u32::MAX) => format!("from v{first} on"),
            (first, last) if first == last => format!("v{first}"),
            (first, last) => format!("v{first} to v{last}"),
        };
        let without = without.chars().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
        let without = if without.is_empty() { "none".to_owned() } else { without };
        let steps =
            steps.iter().map(|(from, disks)| format!("{from}: {disks}")).collect::<Vec<_>>().join(", ");
        text += &format!("| {letters} | {versions} | {without} | {steps} |\n");
    }
    text
}

/// The parts of a size's name, such as `Standard_E8-4ds_v5`.
#[derive(Debug, PartialEq, Eq)]
struct SizeName {
    letters: String,
    number: u32,
    features: String,
    version: u32,
}

impl SizeName {
    fn parse(size: &str) -> Option<Self> {
        let mut parts = size.split('_');
        let _tier = parts.next()?;
        let body = parts.next()?;
        let version = parts.find_map(|part| part.strip_prefix(['v', 'V'])?.parse().ok()).unwrap_or(1);
        let (letters, rest) = body.split_at(body.find(|letter: char| letter.is_ascii_digit())?);
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (number, features) = rest.split_at(end);
        // Fewer processors leave the number of disks as it is.
        let features = features.trim_start_matches(|letter: char| letter == '-' || letter.is_ascii_digit());
        let number = number.parse().ok()?;
        Some(Self {
            letters: letters.to_ascii_uppercase(),
            number,
            features: features.to_ascii_lowercase(),
            version,
        })
    }
}

/// How many data disks a machine of this size takes, if its family has a rule.
pub fn max_data_disks(size: &str) -> Option<u32> {
    let name = SizeName::parse(size)?;
    let fits = |family: &&Family| {
        family.letters.contains(&name.letters.as_str())
            && (family.versions.0..=family.versions.1).contains(&name.version)
            && !name.features.chars().any(|feature| family.without.contains(feature))
    };
    let family = FAMILIES.iter().find(fits)?;
    family.steps.iter().rev().find(|(from, _)| name.number >= *from).map(|(_, disks)| *disks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 3.12: the examples there, and a few of other families.
    #[test]
    fn families_have_the_published_numbers_or_fewer() {
        for (size, expected) in [
            ("Standard_D2s_v3", Some(4)),
            ("Standard_D4s_v3", Some(8)),
            ("Standard_D8s_v3", Some(16)),
            ("Standard_D16s_v3", Some(32)),
            ("STANDARD_D16S_V3", Some(32)),
            ("Standard_B1s", Some(2)),
            ("Standard_B2ms", Some(4)),
            ("Standard_DS2_v2", Some(8)),
            ("Standard_DS13-2_v2", Some(32)),
            ("Standard_D4ds_v6", Some(12)),
            ("Standard_D4as_v6", Some(8)),
            ("Standard_D96s_v6", Some(64)),
            ("Standard_E96s_v5", Some(32)),
            ("Standard_E8-4ds_v5", Some(16)),
            ("Standard_M128s", Some(64)),
            ("Standard_A2_v2", Some(4)),
            ("Standard_F8s_v2", Some(16)),
            ("Standard_L8s_v3", Some(16)),
            ("Standard_NC24ads_A100_v4", Some(8)),
            ("Standard_HB120rs_v3", Some(4)),
            ("Standard_Z9_v9", None),
            ("Standard_D", None),
            ("", None),
        ] {
            assert_eq!(max_data_disks(size), expected, "{size}");
        }
    }
}
