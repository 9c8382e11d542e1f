//! The names of VolumeAttachments, which kube-controller-manager derives from what they attach.

use sha2::{Digest as _, Sha256};

/// The name of the VolumeAttachment of a volume for a node.
pub(super) fn attachment_name(volume: &str, driver: &str, node: &str) -> String {
    let digest = Sha256::digest([volume, driver, node].concat().as_bytes());
    let mut name = "csi-".to_owned();
    for byte in digest {
        for half in [byte >> 4, byte & 0xf] {
            name.push(char::from_digit(u32::from(half), 16).unwrap_or('0'));
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum that `sha256sum` gives for the three, as kube-controller-manager writes them one after the other.
    #[test]
    fn a_name_is_the_hash_of_volume_driver_and_node() {
        assert_eq!(
            attachment_name("volume", "disk.csi.azure.com", "node"),
            "csi-f670a92eba0af9010b097d78f5198ca87fe17c01839f5a2663a3a1c1b44017a3"
        );
    }
}
