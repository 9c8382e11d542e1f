//! The attach of a disk, from its volume's context and, where it could be read, its document.

use azure_types::ResourceId;

use super::context::VolumeContext;
use super::observed::ObservedDisk;
use crate::attach::intent::Attach;
use crate::model::disk_sku::DiskSku;
use crate::model::id::DiskId;
use crate::parameters::tags::WRITE_ACCELERATOR;

/// The intent for a machine's writer. Without the disk's document, Azure judges whether it is free.
pub fn intent(
    arrival: u64,
    disk: DiskId,
    context: VolumeContext,
    document: Option<ObservedDisk<'_>>,
) -> Attach {
    let sku = document.and_then(ObservedDisk::sku);
    let shares = document.map(ObservedDisk::max_shares).max(context.max_shares).unwrap_or(1);
    let set = document.and_then(ObservedDisk::encryption_set);
    let accelerator = document.and_then(|document| document.tag(WRITE_ACCELERATOR));
    Attach {
        arrival,
        disk,
        caching: context.caching.at_attach(sku, document.and_then(ObservedDisk::size_gib), shares),
        has_write_accelerator: accelerator.is_some_and(|value| value.eq_ignore_ascii_case("true")),
        encryption_set: set.and_then(|set| ResourceId::parse(set).ok()),
        is_ultra: sku == Some(DiskSku::UltraSsdLrs),
        max_shares: shares,
        managed_by: document.and_then(ObservedDisk::managed_by),
        state: document.and_then(ObservedDisk::state).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::disk_sku::Caching;

    /// Section 3.9, pre-checks of the engine: caching, encryption set and write accelerator.
    #[test]
    fn an_attach_has_what_the_disk_says() {
        let set = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/e";
        let id = DiskId::new("s", "g", "d");
        let context = VolumeContext {
            caching: Caching::ReadOnly,
            max_shares: None,
            attach_delay_ms: None,
            is_ours: true,
        };
        let document = json!({
            "sku": { "name": "Premium_LRS" },
            "tags": { "WriteAcceleratorEnabled": "true" },
            "properties": { "diskSizeGB": 4096, "diskState": "Unattached", "encryption": { "diskEncryptionSetId": set } },
        });
        let attach = intent(1, id.clone(), context, Some(ObservedDisk(&document)));
        assert_eq!(attach.caching, Caching::None);
        assert!(attach.has_write_accelerator && !attach.is_ultra);
        assert_eq!(attach.encryption_set.unwrap().as_str(), set);
        assert_eq!(
            (attach.max_shares, attach.managed_by, attach.state.as_deref()),
            (1, None, Some("Unattached"))
        );
        let unread = intent(1, id, VolumeContext { max_shares: Some(2), ..context }, None);
        assert!(!unread.has_write_accelerator);
        assert_eq!((unread.caching, unread.max_shares, unread.state), (Caching::ReadOnly, 2, None));
    }
}
