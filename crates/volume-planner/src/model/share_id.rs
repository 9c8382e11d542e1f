//! IDs of volumes and snapshots on shares (section 4.2).
//!
//! ```text
//! volume     GROUP#ACCOUNT#SHARE#DISK#UUID#NAMESPACE[#SUBSCRIPTION]
//! snapshot   VOLUME#TIME#SUBSCRIPTION, and shorter forms of other versions
//! ```

use std::fmt;

use super::error::{Code, Refusal, Result};

const SEPARATOR: char = '#';
const FORM: &str = "<group>#<account>#<share>#<disk>#<uuid>#<namespace>[#<subscription>]";
const SNAPSHOT_FORM: &str = "<ID of the volume>#<time>[#<subscription>]";

/// The ID of a volume; parts that it has not are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareId {
    /// The account's resource group; empty for volumes that the in-tree driver made.
    pub group: String,
    /// The account.
    pub account: String,
    /// The share.
    pub share: String,
    /// The file of a disk on the share.
    pub disk: String,
    /// The name of the request, if the class names the share.
    pub uuid: String,
    /// The namespace of the Secret with the account's key.
    pub secret_namespace: String,
    /// The account's subscription, if it is not the cluster's.
    pub subscription: String,
}

/// The ID of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareSnapshotId {
    /// The volume.
    pub volume: ShareId,
    /// The time that names the snapshot, in UTC with seven digits of a second.
    pub time: String,
}

impl ShareId {
    /// Reads an ID.
    ///
    /// # Errors
    /// It has less than three parts, no share, or a path that leads elsewhere; the caller gets this code.
    pub fn parse(text: &str, code: Code) -> Result<Self> {
        let malformed = || Refusal::MalformedId { what: "volume", id: text.to_owned(), expected: FORM, code };
        let parts: Vec<&str> = text.split(SEPARATOR).collect();
        if parts.len() < 3 {
            return Err(malformed());
        }
        let part = |at: usize| parts.get(at).copied().unwrap_or_default().to_owned();
        // Volumes that the in-tree driver made have no group, and the namespace in the fifth part.
        let is_in_tree = parts[0].is_empty() && parts.len() < 6;
        let id = Self {
            group: part(0),
            account: part(1),
            share: part(2),
            disk: part(3),
            uuid: if is_in_tree { String::new() } else { part(4) },
            secret_namespace: if is_in_tree { part(4) } else { part(5) },
            subscription: part(6),
        };
        let leads_elsewhere = |text: &str| text.split(['/', '\\']).any(|segment| segment == "..");
        let is_bad = id.account.is_empty()
            || id.share.is_empty()
            || leads_elsewhere(&id.disk)
            || leads_elsewhere(&id.secret_namespace);
        if is_bad { Err(malformed()) } else { Ok(id) }
    }
}

impl fmt::Display for ShareId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, account, share, disk, uuid, secret_namespace, subscription } = self;
        write!(f, "{group}#{account}#{share}#{disk}#{uuid}#{secret_namespace}")?;
        if subscription.is_empty() { Ok(()) } else { write!(f, "#{subscription}") }
    }
}

impl ShareSnapshotId {
    /// Reads an ID, in any of its forms: the time is known by its form, whatever stands beside it.
    ///
    /// # Errors
    /// There is no time in it, or no volume before it; the caller gets this code.
    pub fn parse(text: &str, code: Code) -> Result<Self> {
        let malformed =
            || Refusal::MalformedId { what: "snapshot", id: text.to_owned(), expected: SNAPSHOT_FORM, code };
        let parts: Vec<&str> = text.split(SEPARATOR).collect();
        let at = parts.iter().rposition(|part| is_time(part)).ok_or_else(malformed)?;
        // The subscription stands behind the time, or before it.
        let behind = parts.get(at + 1).copied().unwrap_or_default();
        let before = if at == 7 { parts[6] } else { "" };
        let volume = parts[..at.min(6)].join("#");
        // A short form without a group begins with the account.
        let volume = if at == 2 { ["#", &volume].concat() } else { volume };
        let mut volume = ShareId::parse(&volume, code).map_err(|_| malformed())?;
        volume.subscription = if behind.is_empty() { before } else { behind }.to_owned();
        Ok(Self { volume, time: parts[at].to_owned() })
    }
}

impl fmt::Display for ShareSnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subscription = &self.volume.subscription;
        let volume = ShareId { subscription: String::new(), ..self.volume.clone() };
        write!(f, "{volume}#{}#{subscription}", self.time)
    }
}

/// Whether a text is a time such as `2026-01-31T12:00:00.0000000Z`.
fn is_time(text: &str) -> bool {
    let form = "dddd-dd-ddTdd:dd:dd.dddddddZ";
    text.len() == form.len()
        && text.bytes().zip(form.bytes()).all(|(byte, kind)| match kind {
            b'd' => byte.is_ascii_digit(),
            other => byte == other,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-01-31T12:00:00.0000000Z";

    /// FILE-001. Section 4.2: the forms of IDs of volumes.
    #[test]
    fn ids_of_volumes_have_at_least_three_parts() {
        let read = |id: &str| {
            ShareId::parse(id, Code::NotFound).ok().map(|id| {
                [id.group, id.account, id.share, id.disk, id.uuid, id.secret_namespace, id.subscription]
                    .join("|")
            })
        };
        for (id, parts) in [
            ("g#a#s###", Some("g|a|s||||")),
            ("g#a#s#d.vhd#u#ns#sub", Some("g|a|s|d.vhd|u|ns|sub")),
            ("g#a#s", Some("g|a|s||||")),
            ("#a#s#d#ns", Some("|a|s|d||ns|")),
            ("#a#s#d#u#ns", Some("|a|s|d|u|ns|")),
            ("g#a", None),
            ("pvc-1", None),
            ("", None),
            ("g##s", None),
            ("g#a#", None),
            ("g#a#s#../../etc#u#ns", None),
            ("g#a#s#d#u#a/../b", None),
            ("1#2#3#4#5#6#7#8", Some("1|2|3|4|5|6|7")),
        ] {
            assert_eq!(read(id).as_deref(), parts, "{id}");
        }
        assert_eq!(ShareId::parse("g#a", Code::NotFound).unwrap_err().code(), Code::NotFound);
        for id in ["g#a#s###", "g#a#s#d#u#ns#sub", "g#a#s#d#u#ns"] {
            assert_eq!(ShareId::parse(id, Code::NotFound).unwrap().to_string(), id);
        }
    }

    /// FILE-001. Section 4.2: the forms of IDs of snapshots.
    #[test]
    fn ids_of_snapshots_have_a_time() {
        let of = |id: &str| {
            let id = ShareSnapshotId::parse(&id.replace("TIME", TIME), Code::NotFound).ok()?;
            assert_eq!(id.time, TIME);
            Some(id.volume.to_string())
        };
        for (id, volume) in [
            ("g#a#s#d#u#ns#TIME#sub", Some("g#a#s#d#u#ns#sub")),
            ("g#a#s#d#u#ns#sub#TIME", Some("g#a#s#d#u#ns#sub")),
            ("g#a#s#d#u#ns#TIME#", Some("g#a#s#d#u#ns")),
            ("g#a#s#d#u#ns#TIME", Some("g#a#s#d#u#ns")),
            ("g#a#s#TIME", Some("g#a#s###")),
            ("g#a#s#TIME#sub", Some("g#a#s####sub")),
            ("#a#s#TIME", Some("#a#s###")),
            ("a#s#TIME", Some("#a#s###")),
            ("g#a#s", None),
            ("TIME", None),
            ("", None),
        ] {
            assert_eq!(of(id).as_deref(), volume, "{id}");
        }
        let id = format!("g#a#s#d#u#ns#{TIME}#sub");
        assert_eq!(ShareSnapshotId::parse(&id, Code::NotFound).unwrap().to_string(), id);
        assert!(!is_time("2026-01-31T12:00:00.000000Z") && !is_time("2026-01-31 12:00:00.0000000Z"));
    }
}
