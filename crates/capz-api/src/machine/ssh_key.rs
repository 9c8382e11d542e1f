//! SSH keys of machines.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::field_error::Field;

/// Names that begin a key's blob (RFC 4253 section 6.6, RFC 5656, RFC 8709, and OpenSSH's for security keys).
const ALGORITHMS: [&str; 8] = [
    "ssh-rsa",
    "ssh-dss",
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

/// Validates that the member is a line of `authorized_keys` in base64.
pub(crate) fn check(key: Option<&str>, field: &Field<'_>) {
    let key = key.unwrap_or_default();
    match STANDARD.decode(key) {
        Err(_) => field.invalid(key, "the SSH public key is not properly base64 encoded"),
        Ok(line) => field.invalid_if(
            !String::from_utf8(line).is_ok_and(|line| is_authorized_key(&line)),
            key,
            "the SSH public key is not valid: it must be a line such as 'ssh-rsa AAAA… name', in base64",
        ),
    }
}

/// Whether one of the lines names an algorithm and a key of exactly that algorithm; options may precede, a comment may
/// follow.
fn is_authorized_key(text: &str) -> bool {
    text.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.windows(2).any(|pair| {
            let [algorithm, key] = pair else { return false };
            ALGORITHMS.contains(algorithm)
                && STANDARD.decode(key).is_ok_and(|blob| is_key_of(&blob, algorithm))
        })
    })
}

/// A key begins with the length of its algorithm's name, and the name.
fn is_key_of(blob: &[u8], algorithm: &str) -> bool {
    let Some((length, rest)) = blob.split_first_chunk::<4>() else { return false };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    rest.get(..length) == Some(algorithm.as_bytes()) && rest.len() > length
}
