//! Why a share cannot be mounted: from the end of the helper, and from checks that were made then, to a message and a code.
//!
//! The kernel's number says little: 13 is a wrong key, a disabled one, a firewall and a clock that is wrong. So the checks go before
//! it: a port that is closed is named as such, whatever the helper said.

use std::net::IpAddr;
use std::time::Duration;

use super::attributes::Protocol;

/// How a helper ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It is not installed.
    Missing,
    /// It took this long and was killed.
    Killed(Duration),
    /// It did not start, for this reason.
    Unstarted(String),
    /// It failed with these words.
    Failed(String),
}

/// What checks found after a failure; what was not checked is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checks {
    /// The addresses of the host, or why there are none.
    pub addresses: Option<Result<Vec<IpAddr>, String>>,
    /// Whether the host's name is that of a private endpoint.
    pub expects_private: bool,
    /// Why the port of the protocol takes no connection; `Ok` if it does.
    pub port: Option<Result<(), String>>,
    /// Whether the kernel has the protocol.
    pub kernel_has_protocol: Option<bool>,
    /// Whether the key is one of the account's as they are now.
    pub key_is_current: Option<bool>,
    /// Whether the login was by a key.
    pub is_by_key: bool,
}

/// The code of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The request has a mistake.
    InvalidArgument,
    /// The share or folder does not exist.
    NotFound,
    /// The login is refused.
    PermissionDenied,
    /// The machine lacks something.
    FailedPrecondition,
    /// The service cannot be reached; it may be, later.
    Unavailable,
    /// Anything else.
    Internal,
}

/// Why a share cannot be mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The code.
    pub answer: Answer,
    /// The cause, with the check that found it and the remedy.
    pub cause: String,
}

impl Protocol {
    /// The port of its servers.
    pub fn port(self) -> u16 {
        match self {
            Self::Smb => 445,
            Self::Nfs => 2049,
        }
    }

    /// Its helper.
    pub fn helper(self) -> &'static str {
        match self {
            Self::Smb => "mount.cifs",
            Self::Nfs => "mount.nfs",
        }
    }

    /// Its name in the kernel's list of file systems.
    pub fn kernel_name(self) -> &'static str {
        match self {
            Self::Smb => "cifs",
            Self::Nfs => "nfs4",
        }
    }
}

/// The kernel's number in the words of `mount.cifs`: `mount error(13): Permission denied`.
fn number(words: &str) -> Option<u32> {
    words.split_once("mount error(")?.1.split_once(')')?.0.parse().ok()
}

/// Finds the cause of a failure.
pub fn diagnose(protocol: Protocol, ending: &Ending, checks: &Checks) -> Diagnosis {
    let helper = protocol.helper();
    let found = |answer, cause: String| Diagnosis { answer, cause };
    match ending {
        Ending::Missing => {
            return found(
                Answer::FailedPrecondition,
                format!("{helper} is not installed; use an image that has it"),
            );
        }
        Ending::Unstarted(reason) => {
            return found(Answer::Internal, format!("{helper} does not start: {reason}"));
        }
        Ending::Killed(_) | Ending::Failed(_) => {}
    }
    if checks.kernel_has_protocol == Some(false) {
        let name = protocol.kernel_name();
        let cause = format!(
            "the machine's kernel has no {name} (/proc/filesystems lacks it); load the module ({}) or use another node image",
            if protocol == Protocol::Smb { "modprobe cifs" } else { "modprobe nfsv4" }
        );
        return found(Answer::FailedPrecondition, cause);
    }
    if let Some(cause) = of_network(protocol, checks) {
        return found(Answer::Unavailable, cause);
    }
    let words = match ending {
        Ending::Killed(limit) => {
            let cause = format!(
                "{helper} did not end within {} s and was killed, although port {} takes connections; the service may be busy, and the \
                 mount is tried again",
                limit.as_secs(),
                protocol.port()
            );
            return found(Answer::Unavailable, cause);
        }
        Ending::Failed(words) => words,
        Ending::Missing | Ending::Unstarted(_) => return found(Answer::Internal, String::new()),
    };
    let (answer, cause) = match protocol {
        Protocol::Smb => of_smb(words, checks),
        Protocol::Nfs => of_nfs(words),
    };
    found(answer, cause.to_owned())
}

fn of_network(protocol: Protocol, checks: &Checks) -> Option<String> {
    let addresses = match checks.addresses.as_ref()? {
        Ok(addresses) => addresses,
        Err(reason) => {
            return Some(format!(
                "the host has no address (DNS: {reason}); correct the account's name or the server, or link the private DNS zone to the \
                 node's network"
            ));
        }
    };
    if checks.expects_private && !addresses.iter().any(is_private) {
        let shown = addresses.first().map(ToString::to_string).unwrap_or_default();
        return Some(format!(
            "the host's name resolves to the public address {shown}, and a private endpoint is expected; link the zone \
             privatelink.file.* to the node's network"
        ));
    }
    if let Some(Err(reason)) = &checks.port {
        let port = protocol.port();
        return Some(format!(
            "port {port} cannot be reached ({reason}); open it for TCP in the network security group, the firewall and at the provider, \
             and let the account's network rules admit the node's subnet"
        ));
    }
    None
}

/// Addresses that are not the Internet's (RFC 1918, RFC 6598, RFC 4193).
fn is_private(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            address.is_private() || (first == 100 && (64..128).contains(&second))
        }
        IpAddr::V6(address) => address.is_unique_local(),
    }
}

fn of_smb(words: &str, checks: &Checks) -> (Answer, &'static str) {
    let lower = words.to_ascii_lowercase();
    if lower.contains("clock skew") || lower.contains("time_difference") {
        return (
            Answer::FailedPrecondition,
            "the machine's clock differs too much from the service's; correct it (chronyc makestep)",
        );
    }
    if lower.contains("could not resolve address") {
        return (
            Answer::Unavailable,
            "the host had no address; it has one now, and the mount is tried again",
        );
    }
    match number(words) {
        Some(13) if checks.key_is_current == Some(false) => (
            Answer::PermissionDenied,
            "the account's key was changed: it is none of the account's keys now; update the Secret, or delete it so that the key is \
             read from Azure",
        ),
        Some(13) if checks.key_is_current == Some(true) => (
            Answer::PermissionDenied,
            "the key is the account's, and the login is refused; allow keys on the account (allowSharedKeyAccess, NTLM v2 and the SMB \
             settings of the file service), and let its network rules admit the node's subnet",
        ),
        Some(13) if checks.is_by_key => (
            Answer::PermissionDenied,
            "the login is refused; compare account and key, allow keys on the account, and let its network rules admit the node's subnet",
        ),
        Some(13) => (
            Answer::PermissionDenied,
            "the login is refused; give the identity the role Storage File Data SMB MI Admin, and enable SMB OAuth on the account",
        ),
        Some(126..=129) => (
            Answer::PermissionDenied,
            "there is no valid ticket for the host; compare identity and token, and the machine's clock (a difference of five minutes \
             makes tickets invalid)",
        ),
        Some(2) => (
            Answer::NotFound,
            "the share or the folder does not exist; create it, or correct shareName and folderName",
        ),
        Some(19) => (
            Answer::FailedPrecondition,
            "the machine's kernel has no cifs; load the module (modprobe cifs) or use another node image",
        ),
        Some(22) => (
            Answer::InvalidArgument,
            "the kernel does not take one of the mount options; correct mountOptions",
        ),
        Some(95) => (
            Answer::FailedPrecondition,
            "the service does not take this version or encryption of SMB; use vers=3.0 or later, and an account that takes the kernel's \
             ciphers",
        ),
        Some(104 | 110 | 111 | 112 | 113 | 115) => (
            Answer::Unavailable,
            "the connection to the service failed; it can be made now, and the mount is tried again",
        ),
        Some(16) => (Answer::Internal, "the path is in use"),
        _ => (Answer::Internal, "the helper's words say why"),
    }
}

fn of_nfs(words: &str) -> (Answer, &'static str) {
    let lower = words.to_ascii_lowercase();
    let has = |part: &str| lower.contains(part);
    if has("access denied by server") || has("operation not permitted") || has("permission denied") {
        (
            Answer::PermissionDenied,
            "the service refuses the machine; let the account's network rules admit the node's subnet, and turn off secure transfer \
             (supportsHttpsTrafficOnly), or encrypt in transit",
        )
    } else if has("no such file or directory") {
        (
            Answer::NotFound,
            "the share or the folder does not exist, or is no share for NFS; correct account, shareName and folderName",
        )
    } else if has("failed to resolve") || has("timed out") || has("connection refused") || has("no route") {
        (
            Answer::Unavailable,
            "the connection to the service failed; it can be made now, and the mount is tried again",
        )
    } else if has("no such device") || has("unknown filesystem type") {
        (
            Answer::FailedPrecondition,
            "the machine's kernel has no nfs4; load the module (modprobe nfsv4) or use another node image",
        )
    } else if has("protocol not supported") || has("requested nfs version") {
        (Answer::FailedPrecondition, "the service has NFS 4.1 alone; remove other versions from mountOptions")
    } else if has("incorrect mount option") || has("invalid argument") {
        (Answer::InvalidArgument, "one of the mount options is not possible; correct mountOptions")
    } else {
        (Answer::Internal, "the helper's words say why")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn private() -> Option<Result<Vec<IpAddr>, String>> {
        Some(Ok(vec![IpAddr::from([10, 0, 0, 4])]))
    }

    fn reached() -> Checks {
        Checks {
            addresses: private(),
            port: Some(Ok(())),
            kernel_has_protocol: Some(true),
            is_by_key: true,
            ..Checks::default()
        }
    }

    /// FILE-129. Section 4.10, and the most frequent complaint about mounts: an error says what is wrong with the check that found it.
    #[test]
    fn a_failed_mount_says_why() {
        use Answer::*;
        let smb = |number: u32| Ending::Failed(format!("exit code 32: mount error({number}): words"));
        let nfs = |words: &str| Ending::Failed(format!("exit code 32: mount.nfs: {words}"));
        let killed = Ending::Killed(Duration::from_secs(90));
        let closed = Checks { port: Some(Err("timed out".to_owned())), ..reached() };
        let nameless = Checks { addresses: Some(Err("not found".to_owned())), port: None, ..reached() };
        let public = Checks {
            addresses: Some(Ok(vec![IpAddr::from([20, 1, 2, 3])])),
            expects_private: true,
            ..reached()
        };
        let expected = Checks { expects_private: true, ..reached() };
        let bare = Checks { kernel_has_protocol: Some(false), ..closed.clone() };
        let old_key = Checks { key_is_current: Some(false), ..reached() };
        let right_key = Checks { key_is_current: Some(true), ..reached() };
        let ticket = Checks { is_by_key: false, ..reached() };
        let rows: Vec<(Protocol, Ending, Checks, Answer, &str)> = vec![
            (
                Protocol::Smb,
                Ending::Missing,
                Checks::default(),
                FailedPrecondition,
                "mount.cifs is not installed",
            ),
            (
                Protocol::Nfs,
                Ending::Missing,
                Checks::default(),
                FailedPrecondition,
                "mount.nfs is not installed",
            ),
            (
                Protocol::Smb,
                Ending::Unstarted("E2BIG".to_owned()),
                reached(),
                Internal,
                "does not start: E2BIG",
            ),
            (Protocol::Smb, smb(19), bare.clone(), FailedPrecondition, "/proc/filesystems lacks it"),
            (Protocol::Nfs, killed.clone(), bare, FailedPrecondition, "modprobe nfsv4"),
            (Protocol::Smb, smb(115), closed.clone(), Unavailable, "port 445 cannot be reached (timed out)"),
            (Protocol::Smb, smb(13), closed.clone(), Unavailable, "port 445"),
            (Protocol::Nfs, killed.clone(), closed, Unavailable, "port 2049"),
            (Protocol::Smb, smb(2), nameless, Unavailable, "no address (DNS: not found)"),
            (
                Protocol::Smb,
                smb(13),
                public,
                Unavailable,
                "public address 20.1.2.3, and a private endpoint is expected",
            ),
            (Protocol::Smb, smb(13), expected, PermissionDenied, "compare account and key"),
            (Protocol::Smb, killed, reached(), Unavailable, "did not end within 90 s and was killed"),
            (Protocol::Smb, smb(13), old_key, PermissionDenied, "the account's key was changed"),
            (Protocol::Smb, smb(13), right_key, PermissionDenied, "allowSharedKeyAccess"),
            (Protocol::Smb, smb(13), ticket.clone(), PermissionDenied, "Storage File Data SMB MI Admin"),
            (Protocol::Smb, smb(126), ticket, PermissionDenied, "no valid ticket"),
            (
                Protocol::Smb,
                Ending::Failed("Clock skew too great".to_owned()),
                reached(),
                FailedPrecondition,
                "clock",
            ),
            (Protocol::Smb, smb(2), reached(), NotFound, "shareName"),
            (Protocol::Smb, smb(22), reached(), InvalidArgument, "mountOptions"),
            (Protocol::Smb, smb(95), reached(), FailedPrecondition, "vers=3.0"),
            (Protocol::Smb, smb(110), reached(), Unavailable, "tried again"),
            (Protocol::Smb, smb(112), reached(), Unavailable, "tried again"),
            (Protocol::Smb, smb(5), reached(), Internal, "the helper's words"),
            (
                Protocol::Nfs,
                nfs("access denied by server while mounting a"),
                reached(),
                PermissionDenied,
                "secure transfer",
            ),
            (
                Protocol::Nfs,
                nfs("mounting failed, reason given by server: No such file or directory"),
                reached(),
                NotFound,
                "is no share for NFS",
            ),
            (Protocol::Nfs, nfs("Connection timed out"), reached(), Unavailable, "tried again"),
            (Protocol::Nfs, nfs("No such device"), reached(), FailedPrecondition, "nfs4"),
            (Protocol::Nfs, nfs("Protocol not supported"), reached(), FailedPrecondition, "NFS 4.1"),
            (
                Protocol::Nfs,
                nfs("an incorrect mount option was specified"),
                reached(),
                InvalidArgument,
                "mountOptions",
            ),
        ];
        for (protocol, ending, checks, answer, words) in rows {
            let found = diagnose(protocol, &ending, &checks);
            assert_eq!(found.answer, answer, "{ending:?}: {found:?}");
            assert!(found.cause.contains(words), "{words} is missing in {found:?}");
        }
    }
}
