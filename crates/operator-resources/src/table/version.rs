//! Versions: the operator names one by the date of Azure's API version.

/// The API version of Azure for one of the operator's: `v1api20240901` and `v20240901` are `2024-09-01`,
/// `v20251002preview` is `2025-10-02-preview`. `None` if the name has no such form.
pub fn api_version(version: &str) -> Option<String> {
    let version = version.strip_prefix('v')?;
    let generations = ["1alpha1api", "1api", "1beta", ""];
    let date = generations.iter().find_map(|generation| dated(version.strip_prefix(generation)?))?;
    Some(date)
}

/// `20240901` as `2024-09-01`, `20251002preview` as `2025-10-02-preview`.
fn dated(text: &str) -> Option<String> {
    let (digits, suffix) = text.split_at_checked(8)?;
    let month = digits.get(4..6)?.parse::<u8>().ok()?;
    let day = digits.get(6..8)?.parse::<u8>().ok()?;
    let is_date = digits.bytes().all(|byte| byte.is_ascii_digit())
        && digits.starts_with("20")
        && (1..=12).contains(&month)
        && (1..=31).contains(&day);
    let suffix = match suffix {
        "" => "",
        "preview" => "-preview",
        _ => return None,
    };
    is_date.then(|| format!("{}-{month:02}-{day:02}{suffix}", &digits[..4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_date() {
        for (version, expected) in [
            ("v1api20240901", Some("2024-09-01")),
            ("v20250801", Some("2025-08-01")),
            ("v20251002preview", Some("2025-10-02-preview")),
            ("v1api20231102preview", Some("2023-11-02-preview")),
            ("v1beta20210501", Some("2021-05-01")),
            ("v1alpha1api20210501", Some("2021-05-01")),
            ("v1", None),
            ("v1beta1", None),
            ("20240901", None),
            ("v1api20241301", None),
            ("v1api20240900", None),
            ("v1api2024090", None),
            ("v1api20240901storage", None),
            ("v1api2024é901", None),
            ("v1api30240901", None),
        ] {
            assert_eq!(api_version(version).as_deref(), expected, "{version}");
        }
    }
}
