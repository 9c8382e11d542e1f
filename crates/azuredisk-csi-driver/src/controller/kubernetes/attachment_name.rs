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

    /// As kube-controller-manager named one for this volume, driver and node.
    #[test]
    fn a_name_is_the_hash_of_volume_driver_and_node() {
        let name = attachment_name("volume", "disk.csi.azure.com", "node");
        assert_eq!(name.len(), "csi-".len() + 64);
        assert_eq!(name, attachment_name("vol", "umedisk.csi.azure.com", "node"));
        assert_ne!(name, attachment_name("volume", "disk.csi.azure.com", "nodf"));
    }
}
