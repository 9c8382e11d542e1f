//! Tags: as users write them, and those that the driver adds.

use std::collections::BTreeMap;

use super::given::Given;
use super::keys;
use super::templates::Templates;
use crate::model::error::{Refusal, Result};

/// Tags of a resource.
pub type Tags = BTreeMap<String, String>;

/// The tag that says which driver made a resource.
pub const CREATED_BY: &str = "k8s-azure-created-by";
/// Its value.
pub const CREATED_BY_DISK_DRIVER: &str = "kubernetes-azure-dd";
/// The tag of a disk that is attached with write acceleration.
pub const WRITE_ACCELERATOR: &str = "writeacceleratorenabled";
/// The tag of a snapshot for the disk that it is of.
pub const SOURCE_VOLUME: &str = "source_volume_id";
/// The tag of a disk for the name of its PersistentVolume.
pub const PV_NAME: &str = "kubernetes.io-created-for-pv-name";

/// Tags for what side-cars say about the objects that a resource is made for.
const INJECTED: [(&str, &str); 5] = [
    (keys::PVC_NAME, "kubernetes.io-created-for-pvc-name"),
    (keys::PVC_NAMESPACE, "kubernetes.io-created-for-pvc-namespace"),
    (keys::PV_NAME, PV_NAME),
    (keys::SNAPSHOT_NAME, "kubernetes.io-created-for-snapshot-name"),
    (keys::SNAPSHOT_NAMESPACE, "kubernetes.io-created-for-snapshot-namespace"),
];
/// Characters that Azure refuses in keys.
const FORBIDDEN: &[char] = &['<', '>', '%', '&', '?', '\\', '/'];
const DELIMITER: &str = ",";

/// Adds a tag, in place of one with the same key in any case: Azure ignores the case of keys.
pub fn set(tags: &mut Tags, key: &str, value: &str) {
    tags.retain(|own, _| !own.eq_ignore_ascii_case(key));
    tags.insert(key.to_owned(), value.to_owned());
}

/// Reads `key1=value1,key2=value2`. The first `=` ends a key; keys and values are trimmed.
///
/// # Errors
/// A part has no `=`, no key, or a key that Azure refuses.
pub fn parse(text: &str, delimiter: Option<&str>) -> Result<Tags> {
    let refuse = |problem: String| Refusal::InvalidTags { tags: text.to_owned(), problem };
    let mut tags = Tags::new();
    if text.trim().is_empty() {
        return Ok(tags);
    }
    for part in text.split(delimiter.filter(|one| !one.is_empty()).unwrap_or(DELIMITER)) {
        let (key, value) = part.split_once('=').ok_or_else(|| refuse(format!("`{part}` has no `=`")))?;
        let key = key.trim();
        if key.is_empty() {
            return Err(refuse(format!("`{part}` has no key")));
        }
        if let Some(letter) = key.chars().find(|letter| FORBIDDEN.contains(letter)) {
            return Err(refuse(format!("key `{key}` contains {letter}, which Azure refuses in keys")));
        }
        set(&mut tags, key, value.trim());
    }
    Ok(tags)
}

/// All tags for parameters: those of the driver and of the side-cars, and the class's over them.
///
/// # Errors
/// The class's are malformed.
pub(super) fn of(given: &Given, templates: &Templates) -> Result<Tags> {
    let mut tags = Tags::from([(CREATED_BY.to_owned(), CREATED_BY_DISK_DRIVER.to_owned())]);
    for (key, tag) in INJECTED {
        if let Some(value) = given.text(key) {
            set(&mut tags, tag, value);
        }
    }
    let own = parse(given.text(keys::TAGS).unwrap_or_default(), given.text(keys::TAG_DELIMITER))?;
    for (key, value) in own {
        set(&mut tags, &key, &templates.fill(&value));
    }
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(text: &str, delimiter: Option<&str>) -> Option<Vec<(String, String)>> {
        parse(text, delimiter).ok().map(|tags| tags.into_iter().collect())
    }

    /// CSI-005. Section 2.5: separators, trimming, blank keys, characters that are refused.
    #[test]
    fn tags_are_split_trimmed_and_checked() {
        let pairs = |list: &[(&str, &str)]| {
            Some(list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
        };
        for (text, delimiter, expected) in [
            ("", None, pairs(&[])),
            ("a=b", None, pairs(&[("a", "b")])),
            (" a = b , c = d=e ", None, pairs(&[("a", "b"), ("c", "d=e")])),
            ("a=b,c;d=e", Some(";"), pairs(&[("a", "b,c"), ("d", "e")])),
            ("a=", None, pairs(&[("a", "")])),
            ("A=1,a=2", None, pairs(&[("a", "2")])),
            ("=b", None, None),
            (" =b", None, None),
            ("ab", None, None),
            ("a=b,", None, None),
            ("a/b=c", None, None),
            ("a?=c", None, None),
        ] {
            assert_eq!(of_text(text, delimiter), expected, "{text}");
        }
    }
}
