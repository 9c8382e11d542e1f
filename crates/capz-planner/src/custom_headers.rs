//! Custom headers of writes: users of AKS turn on features in preview by headers, which annotations hold. Azure shows
//! no header in documents, so a tag with the hash of the headers shows with which ones a resource was written last: a
//! changed annotation is a difference like any other.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cluster::hash;
use crate::compare::Withdrawn;
use crate::goal::Goal;
use crate::terminal::Terminal;

/// The prefix of the annotations; the name of the header follows.
const ANNOTATION: &str = "infrastructure.cluster.x-k8s.io/custom-header-";
/// The tag with the hash of the headers.
const TAG: &str = "sigs.k8s.io_cluster-api-provider-azure_custom-headers";
/// Headers that the client sets itself.
const OWN: [&str; 9] = [
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "if-match",
    "if-none-match",
    "transfer-encoding",
];

/// The headers in the annotations of these objects. Of two objects with the same header the last one counts.
pub fn of<'a>(
    annotations: impl IntoIterator<Item = &'a BTreeMap<String, String>>,
) -> BTreeMap<String, String> {
    let all = annotations.into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.strip_prefix(ANNOTATION)?.to_owned(), value.clone()))).collect()
}

/// Checks that the headers can be sent.
///
/// # Errors
/// An annotation does not name a header, holds a value that no header can have, or names a header of the client's own.
pub(crate) fn check(headers: &BTreeMap<String, String>) -> Result<(), Terminal> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    for (name, value) in headers {
        let why = if name.is_empty() || !name.bytes().all(is_name) {
            "it names no header"
        } else if OWN.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            "this header is set by the program itself"
        } else if !value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)) {
            "its value holds characters that no header may have"
        } else {
            continue;
        };
        return Err(Terminal::configuration(format!(
            "the annotation {ANNOTATION}{name} is invalid: {why}. Correct or remove it"
        )));
    }
    Ok(())
}

/// Sets the headers of a goal's writes. `tags` is the path of the tags in its document, `held` the observed document.
pub(crate) fn apply(
    goal: &mut Goal,
    headers: &BTreeMap<String, String>,
    tags: &'static str,
    held: Option<&Value>,
) {
    goal.headers.clone_from(headers);
    if !headers.is_empty() {
        let mut place = &mut goal.document;
        for member in tags.split('/') {
            place = &mut place[member];
        }
        place[TAG] = json!(format!("{:08x}", hash(&json!(headers).to_string())));
    } else if held.and_then(|held| held.pointer(&format!("/{tags}/{TAG}"))).is_some() {
        goal.withdrawn.push(Withdrawn::Member { within: tags, name: TAG.to_owned() });
    }
}
