//! All randomness, from one seed.
//!
//! A value depends on the seed, on its purpose and on a counter, never on the order of calls: two runs with the same
//! input agree even if requests overtake each other.

use ring::digest::{Context, SHA256};
use uuid::Builder;

/// The seed of one simulated Azure.
#[derive(Debug, Clone, Copy)]
pub struct Seed(pub u64);

impl Seed {
    fn bytes(self, purpose: &str, subject: &str, count: u64) -> [u8; 16] {
        let mut context = Context::new(&SHA256);
        context.update(&self.0.to_be_bytes());
        context.update(purpose.as_bytes());
        context.update(&[0]);
        context.update(subject.to_ascii_lowercase().as_bytes());
        context.update(&[0]);
        context.update(&count.to_be_bytes());
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().zip(context.finish().as_ref()) {
            *to = *from;
        }
        bytes
    }

    /// A GUID (version 4 by its bits).
    pub fn guid(self, purpose: &str, subject: &str, count: u64) -> String {
        Builder::from_random_bytes(self.bytes(purpose, subject, count)).into_uuid().to_string()
    }

    /// A number.
    pub fn number(self, purpose: &str, subject: &str, count: u64) -> u64 {
        self.bytes(purpose, subject, count).iter().take(8).fold(0, |n, byte| n << 8 | u64::from(*byte))
    }

    /// A MAC address as Azure writes it: six octets in upper-case hexadecimal, joined by hyphens.
    pub fn mac_address(self, subject: &str) -> String {
        let bytes = self.bytes("mac", subject, 0);
        // 00-0D-3A is one of the blocks from which Azure's machines have their addresses.
        let tail: Vec<String> = bytes.iter().take(3).map(|byte| format!("{byte:02X}")).collect();
        format!("00-0D-3A-{}", tail.join("-"))
    }
}
