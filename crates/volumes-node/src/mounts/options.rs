//! Options of a mount, as flags and as data for the file system (mount(8), "Filesystem-independent mount options").

use crate::system::MountFlags;

/// The option with which a device is mounted as it is, without checks.
const DIRECT: &str = "directmount";

/// Options that are no business of the kernel.
const IGNORED: [&str; 11] =
    ["defaults", "auto", "noauto", "user", "nouser", "users", "owner", "group", "_netdev", "nofail", "loud"];

/// Options that would change what a mount is.
const REFUSED: [&str; 12] = [
    "bind",
    "rbind",
    "remount",
    "move",
    "shared",
    "rshared",
    "slave",
    "rslave",
    "private",
    "rprivate",
    "unbindable",
    "runbindable",
];

/// Options with their flag, and the option that takes the flag back.
const FLAGS: [(&str, MountFlags, &str); 12] = [
    ("ro", MountFlags::RDONLY, "rw"),
    ("nosuid", MountFlags::NOSUID, "suid"),
    ("nodev", MountFlags::NODEV, "dev"),
    ("noexec", MountFlags::NOEXEC, "exec"),
    ("sync", MountFlags::SYNCHRONOUS, "async"),
    ("dirsync", MountFlags::DIRSYNC, ""),
    ("noatime", MountFlags::NOATIME, "atime"),
    ("nodiratime", MountFlags::NODIRATIME, "diratime"),
    ("relatime", MountFlags::RELATIME, "norelatime"),
    ("strictatime", MountFlags::STRICTATIME, "nostrictatime"),
    ("lazytime", MountFlags::LAZYTIME, "nolazytime"),
    ("nosymfollow", MountFlags::NOSYMFOLLOW, "symfollow"),
];

/// An option that a volume cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("mount option {0} is not possible for a volume; remove it")]
pub struct InvalidOption(String);

/// Options of a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountOptions {
    /// Those that are flags.
    pub flags: MountFlags,
    /// Those for the file system.
    pub data: Vec<String>,
    /// Whether a device is mounted as it is, without checks and without formatting.
    pub is_direct: bool,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self { flags: MountFlags::empty(), data: Vec::new(), is_direct: false }
    }
}

impl MountOptions {
    /// Reads options, of which several may be in one text, separated by commas. Later ones go before earlier ones.
    ///
    /// # Errors
    /// One of them would change what the mount is.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, InvalidOption> {
        let mut options = Self::default();
        for option in texts.into_iter().flat_map(split).map(str::trim).filter(|option| !option.is_empty()) {
            if REFUSED.contains(&option) {
                return Err(InvalidOption(option.to_owned()));
            }
            options.add(option);
        }
        Ok(options)
    }

    fn add(&mut self, option: &str) {
        if option == DIRECT {
            self.is_direct = true;
        } else if let Some((_, flag, _)) = FLAGS.iter().find(|(on, ..)| *on == option) {
            self.flags |= *flag;
        } else if let Some((_, flag, _)) = FLAGS.iter().find(|(.., off)| *off == option) {
            self.flags &= !*flag;
        } else if !IGNORED.contains(&option) && !option.starts_with("x-") && !option.starts_with("comment=") {
            self.data.push(option.to_owned());
        }
    }

    /// Whether nothing is to be written.
    pub fn is_read_only(&self) -> bool {
        self.flags.contains(MountFlags::RDONLY)
    }

    /// Adds an option for the file system, unless it is there.
    pub fn require(&mut self, option: &str) {
        if !self.data.iter().any(|own| own == option) {
            self.data.push(option.to_owned());
        }
    }

    /// The flags of a mount that exists, which a change of one of them must keep.
    pub(super) fn flags_of(options: &[String]) -> MountFlags {
        let own = options.iter().filter_map(|option| FLAGS.iter().find(|(on, ..)| on == option));
        own.fold(MountFlags::empty(), |flags, (_, flag, _)| flags | *flag)
    }

    /// The options as they would be typed, one by one: flags first.
    pub fn list(&self) -> Vec<String> {
        let flags = FLAGS.iter().filter(|(_, flag, _)| self.flags.contains(*flag));
        flags.map(|(on, ..)| (*on).to_owned()).chain(self.data.iter().cloned()).collect()
    }

    /// The options as they would be typed, for errors.
    pub(super) fn words(&self) -> String {
        let words = self.list();
        if words.is_empty() { "no options".to_owned() } else { format!("options {}", words.join(",")) }
    }
}

/// Splits at commas that are not in quotes: labels of SELinux contain some.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |letter: char| {
        is_quoted ^= letter == '"';
        letter == ',' && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_flags_and_data() {
        let none = MountFlags::empty();
        for (texts, flags, data) in [
            (vec![], none, vec![]),
            (vec!["defaults", "_netdev", "x-systemd.automount"], none, vec![]),
            (vec!["noatime,nodev", "discard"], MountFlags::NOATIME | MountFlags::NODEV, vec!["discard"]),
            (vec!["ro", "rw"], none, vec![]),
            (vec!["nodev,dev,ro"], MountFlags::RDONLY, vec![]),
            (vec!["commit=5", "", " barrier=1 "], none, vec!["commit=5", "barrier=1"]),
            (
                vec![r#"context="u:r:t:s0:c1,c2",noexec"#],
                MountFlags::NOEXEC,
                vec![r#"context="u:r:t:s0:c1,c2""#],
            ),
        ] {
            let options = MountOptions::parse(texts.iter().copied()).unwrap();
            assert_eq!(
                (options.flags, options.data),
                (flags, data.into_iter().map(str::to_owned).collect()),
                "{texts:?}"
            );
        }
        let refused = MountOptions::parse(["noatime,remount"]).unwrap_err();
        assert_eq!(refused, InvalidOption("remount".to_owned()));
    }

    #[test]
    fn what_stands_for_no_option_is_not_sent() {
        let mut options = MountOptions::parse(["directmount,ro"]).unwrap();
        assert!(options.is_direct && options.is_read_only());
        options.require("nouuid");
        options.require("nouuid");
        assert_eq!(options.words(), "options ro,nouuid");
        assert_eq!(MountOptions::default().words(), "no options");
    }
}
