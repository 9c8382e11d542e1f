//! The ID that Azure gives a virtual machine, and that its firmware shows inside.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

/// The member `vmId` of a virtual machine: the system UUID in the machine's firmware ("Accessing and using Azure VM
/// unique ID").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct VmId(Uuid);

impl VmId {
    /// Whether a system with this UUID is the machine. Firmware of the first generation stores the first three groups
    /// in the other byte order, and not all systems convert them.
    pub fn is_of(self, system: Uuid) -> bool {
        self.0 == system || self.0 == Uuid::from_bytes_le(*system.as_bytes())
    }
}

/// An invalid UUID is that of no machine.
impl<'de> Deserialize<'de> for VmId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Ok(Self(text.parse().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_a_machine_by_its_uuid_in_either_byte_order() {
        let machine: VmId = serde_json::from_str("\"5C00BC95-8a1d-44a5-a0b4-4d7b3e8f9a01\"").unwrap();
        for (system, is_it) in [
            ("5c00bc95-8a1d-44a5-a0b4-4d7b3e8f9a01", true),
            ("95BC005C-1D8A-A544-A0B4-4D7B3E8F9A01", true),
            ("5c00bc95-8a1d-44a5-a0b4-4d7b3e8f9a02", false),
        ] {
            assert_eq!(machine.is_of(system.parse().unwrap()), is_it, "{system}");
        }
        let strange: VmId = serde_json::from_str("\"none\"").unwrap();
        assert_eq!(strange, VmId::default());
    }
}
