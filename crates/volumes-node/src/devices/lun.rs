//! The LUN of a data disk.

use std::fmt;
use std::str::FromStr;

/// One more than the greatest LUN: no machine takes more data disks.
const LUNS: u8 = 64;

/// The number of a data disk at its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lun(u8);

/// The text names no LUN.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "LUN {0} is invalid: expected a number from 0 to 63, or a path that ends in /disk/azure/scsi1/lun<number>"
)]
pub struct InvalidLun(String);

impl Lun {
    /// The LUN of this number.
    pub const fn new(number: u8) -> Option<Self> {
        if number < LUNS { Some(Self(number)) } else { None }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Lun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Lun {
    type Err = InvalidLun;

    /// Reads a number, or a path by udev's rules for Azure: controllers before our time gave the path.
    fn from_str(text: &str) -> Result<Self, InvalidLun> {
        let number = text.rsplit_once("/disk/azure/scsi").map_or(Some(text), |(_, rest)| {
            let (controller, lun) = rest.split_once("/lun")?;
            is_number(controller).then_some(lun)
        });
        let number = number.filter(|number| is_number(number)).and_then(|number| number.parse().ok());
        number.and_then(Self::new).ok_or_else(|| InvalidLun(text.to_owned()))
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 3.14, step 2: a number of up to two characters, or a path.
    #[test]
    fn a_lun_is_a_number_or_a_path() {
        for (text, expected) in [
            ("0", Some(0)),
            ("63", Some(63)),
            ("07", Some(7)),
            ("64", None),
            ("100", None),
            ("-1", None),
            ("+1", None),
            ("", None),
            ("1.0", None),
            ("/dev/disk/azure/scsi1/lun5", Some(5)),
            ("/host/dev/disk/azure/scsi10/lun12", Some(12)),
            ("/dev/disk/azure/scsi1/lun", None),
            ("/dev/disk/azure/scsi/lun1", None),
            ("/dev/disk/azure/scsi1/lun1-part1", None),
            ("/dev/sdc", None),
        ] {
            assert_eq!(text.parse::<Lun>().ok().map(Lun::number), expected, "{text}");
        }
        let words = "x".parse::<Lun>().unwrap_err().to_string();
        assert!(words.contains("LUN x is invalid"), "{words}");
    }
}
