//! Names of shares and accounts, derived from the names of requests: always the same for the same request.

use sha2::{Digest as _, Sha256};

/// The longest name of a share, and the shortest one.
const MAX_NAME: usize = 63;
const MIN_NAME: usize = 3;
/// What a replaced name begins with.
const REPLACEMENT: &str = "pvc-file-dynamic-";
/// What names of volumes begin with, which is marked for NFS and for disks on shares.
const PVC: &str = "pvc";
/// How many characters the name of a new account has.
const ACCOUNT_NAME: usize = 23;

/// What a share holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareUse {
    /// Files over SMB.
    Smb,
    /// Files over NFS.
    Nfs,
    /// A disk.
    Disk,
}

/// Whether Azure takes a name for a share: 3 to 63 lower-case letters, digits and single hyphens, a letter or digit at both ends.
pub fn is_valid(name: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    (MIN_NAME..=MAX_NAME).contains(&bytes.len())
        && bytes.iter().all(|byte| is_word(byte) || *byte == b'-')
        && bytes.first().is_some_and(is_word)
        && bytes.last().is_some_and(is_word)
        && !name.contains("--")
}

/// The name of the share for a request's name (section 4.2). One that Azure does not take is replaced by a name with the hash of the
/// whole: a repeated request finds its share.
pub fn share_name(request: &str, prefix: Option<&str>, share_use: ShareUse) -> String {
    let marked = match (request.strip_prefix(PVC), share_use) {
        (Some(rest), ShareUse::Nfs) => [PVC, "n", rest].concat(),
        (Some(rest), ShareUse::Disk) => [PVC, "d", rest].concat(),
        _ => request.to_owned(),
    };
    let marked = marked.to_ascii_lowercase();
    let whole = prefix.map_or(marked.clone(), |prefix| [prefix, "-", &marked].concat());
    let cut = whole[..whole.floor_char_boundary(MAX_NAME)].trim_end_matches('-');
    if is_valid(cut) { cut.to_owned() } else { [REPLACEMENT, &hash(&[request], 36)].concat() }
}

/// The name of an account that is made: the same for the same owner, wishes and number, so that a repeated request, or another
/// replica, makes no other one. Names of accounts are unique in all of Azure.
pub fn account_name(owner: &[&str], number: usize) -> String {
    let number = number.to_string();
    let parts: Vec<&str> = owner.iter().copied().chain([number.as_str()]).collect();
    ["f", &hash(&parts, ACCOUNT_NAME - 1)].concat()
}

/// So many hexadecimal digits of the hash of some texts.
fn hash(parts: &[&str], digits: usize) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        // The length keeps parts apart.
        hasher.update(part.len().to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let halves = hasher.finalize().into_iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    halves.take(digits).filter_map(|half| char::from_digit(u32::from(half), 16)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// FILE-002. Section 4.2: what names are made of, and its FIX: a replaced name follows from the request.
    #[test]
    fn names_are_marked_prefixed_cut_or_replaced() {
        let long = format!("pvc-{}", "a".repeat(100));
        for (request, prefix, share_use, name) in [
            ("pvc-1", None, ShareUse::Smb, Some("pvc-1".to_owned())),
            ("pvc-1", None, ShareUse::Nfs, Some("pvcn-1".to_owned())),
            ("pvc-1", None, ShareUse::Disk, Some("pvcd-1".to_owned())),
            ("pvc-1", Some("team"), ShareUse::Nfs, Some("team-pvcn-1".to_owned())),
            ("Data", None, ShareUse::Nfs, Some("data".to_owned())),
            (&long, None, ShareUse::Smb, Some(long[..63].to_owned())),
            ("a--b", None, ShareUse::Smb, None),
            ("a_b", None, ShareUse::Smb, None),
            ("ä", None, ShareUse::Smb, None),
        ] {
            let made = share_name(request, prefix, share_use);
            assert!(is_valid(&made), "{request} {made}");
            match name {
                Some(name) => assert_eq!(made, name),
                None => assert!(made.starts_with(REPLACEMENT), "{made}"),
            }
        }
        assert_ne!(share_name("a_b", None, ShareUse::Smb), share_name("a_c", None, ShareUse::Smb));
    }

    /// FILE-010. An account's name is that of its owner and number, and of nothing else.
    #[test]
    fn a_new_account_has_one_name() {
        let name = account_name(&["s", "g", "class"], 0);
        assert_eq!((name.len(), name.as_bytes()[0]), (ACCOUNT_NAME, b'f'));
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
        assert_eq!(name, account_name(&["s", "g", "class"], 0));
        for other in [account_name(&["s", "g", "class"], 1), account_name(&["sg", "", "class"], 0)] {
            assert_ne!(name, other);
        }
    }

    proptest! {
        #[test]
        fn any_request_has_one_valid_name(request in ".{0,200}", prefix in proptest::option::of("[a-z0-9][a-z0-9-]{0,19}")) {
            let name = share_name(&request, prefix.as_deref(), ShareUse::Nfs);
            prop_assert!(is_valid(&name), "{}", name);
            prop_assert_eq!(&name, &share_name(&request, prefix.as_deref(), ShareUse::Nfs));
        }
    }
}
