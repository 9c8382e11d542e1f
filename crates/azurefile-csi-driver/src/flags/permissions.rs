//! Permissions as Go reads a number: octal behind a zero, hexadecimal behind `0x`, else decimal.

use std::fmt;
use std::str::FromStr;

/// The lowest bits of a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permissions(pub u32);

impl FromStr for Permissions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, radix) = match text.strip_prefix('0') {
            Some(rest) if rest.starts_with(['x', 'X']) => (&rest[1..], 16),
            Some(rest) if rest.starts_with(['o', 'O']) => (&rest[1..], 8),
            Some(rest) if rest.starts_with(['b', 'B']) => (&rest[1..], 2),
            Some(rest) if !rest.is_empty() => (rest, 8),
            _ => (text, 10),
        };
        match u32::from_str_radix(digits, radix) {
            Ok(mode) if mode <= 0o7777 => Ok(Self(mode)),
            _ => Err("expected permissions such as 0777".to_owned()),
        }
    }
}

impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0{:o}", self.0)
    }
}
