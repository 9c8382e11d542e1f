//! Names of disks and snapshots in Azure, derived from the names of requests: always the same for the same request.

use sha2::{Digest as _, Sha256};

/// The longest name of a disk or snapshot.
pub const MAX_NAME: usize = 80;
/// What a replaced name begins with.
const REPLACEMENT: &str = "pvc-disk-dynamic-";
/// The name of the snapshot in the source's region, while a snapshot is copied to another one.
const LOCAL: &str = "local_";

/// Whether Azure takes a name for a disk or a snapshot: 1 to 80 letters, digits, `_`, `.` and `-`, a letter or digit first,
/// no `.` or `-` last.
pub fn is_valid(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric();
    let is_inner = |byte: u8| is_word(byte) || matches!(byte, b'_' | b'.' | b'-');
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    bytes.len() <= MAX_NAME
        && is_word(*first)
        && (is_word(*last) || *last == b'_')
        && bytes.iter().all(|byte| is_inner(*byte))
}

/// The name of the disk or snapshot for a request's name. A long name is cut to 80 characters. One that Azure does not take is
/// replaced by a name with the hash of the whole: a repeated request finds its disk.
pub fn azure_name(request: &str) -> String {
    let cut = &request[..request.floor_char_boundary(MAX_NAME)];
    if is_valid(cut) { cut.to_owned() } else { replacement(request) }
}

/// In the form of a UUID, so that tools which know the established driver's names recognise it.
fn replacement(request: &str) -> String {
    let digest = Sha256::digest(request.as_bytes());
    let mut name = REPLACEMENT.to_owned();
    for (at, byte) in digest.iter().take(16).enumerate() {
        if [4, 6, 8, 10].contains(&at) {
            name.push('-');
        }
        for half in [byte >> 4, byte & 0xf] {
            name.push(char::from_digit(u32::from(half), 16).unwrap_or('0'));
        }
    }
    name
}

/// The name of the snapshot from which a snapshot in another region is copied.
pub fn local_snapshot_name(name: &str) -> String {
    let whole = [LOCAL, name].concat();
    if is_valid(&whole) { whole } else { [LOCAL, &replacement(name)].concat() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// CSI-023. Section 3.2: the naming rule, cutting and replacing.
    #[test]
    fn names_are_cut_or_replaced() {
        let long = "a".repeat(128);
        for (request, name) in [
            ("pvc-1", Some("pvc-1")),
            ("0_a.b-c_", Some("0_a.b-c_")),
            (long.as_str(), Some(&long[..80])),
            ("-a", None),
            ("a-", None),
            ("a.", None),
            ("a/b", None),
            ("${pvc.metadata.name}", None),
            ("", None),
        ] {
            let made = azure_name(request);
            assert!(is_valid(&made), "{request} {made}");
            match name {
                Some(name) => assert_eq!(made, name),
                None => assert!(made.starts_with(REPLACEMENT) && made.len() == 53, "{made}"),
            }
        }
        assert_ne!(azure_name("a/b"), azure_name("a/c"));
    }

    proptest! {
        /// CSI-023. Section 3.2, FIX: the same request has the same name, which Azure takes.
        #[test]
        fn any_request_has_one_valid_name(request in ".{0,200}") {
            let name = azure_name(&request);
            prop_assert!(is_valid(&name));
            prop_assert_eq!(&name, &azure_name(&request));
            prop_assert!(is_valid(&local_snapshot_name(&name)));
        }
    }
}
