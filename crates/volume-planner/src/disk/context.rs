//! The context of a volume: what is stored in its PersistentVolume at creation, and read again when it is used.

use crate::model::disk_sku::{CACHING_NAMES, Caching, DiskSku};
use crate::model::error::{Refusal, Result};
use crate::parameters::disk_table::DISK_PARAMETERS;
use crate::parameters::given::{Entries, merge};
use crate::parameters::keys;

/// The size at creation, which marks a volume that the driver made.
pub const REQUESTED_SIZE: &str = "requestedsizegib";
/// Whether the file system has to grow when the volume is first used.
pub const RESIZE_REQUIRED: &str = "resizeRequired";
const CACHING_MODE: &str = "cachingmode";
const MANAGED: &str = "Managed";
const TRUE: &str = "true";

/// The value of a key in any case.
fn value<'a>(context: &'a Entries, key: &str) -> Option<&'a str> {
    let entry = context.iter().find(|(own, _)| own.eq_ignore_ascii_case(key));
    entry.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
}

/// Sets a key in the spelling in which it is there, or in this one.
fn set(context: &mut Entries, key: &str, value: &str) {
    let own = context.keys().find(|own| own.eq_ignore_ascii_case(key)).cloned();
    context.insert(own.unwrap_or_else(|| key.to_owned()), value.to_owned());
}

/// The context of a new volume: all parameters as they were given, the mutable ones over them, and what was decided. Every key
/// has a row in the table of parameters, and none of these is secret.
pub fn of_new_volume(
    class: &Entries,
    mutable: &Entries,
    sku: DiskSku,
    size_gib: u64,
    is_resize_required: bool,
) -> Entries {
    let mut context = merge(DISK_PARAMETERS, class, mutable);
    set(&mut context, REQUESTED_SIZE, &size_gib.to_string());
    if value(&context, keys::KIND).is_some() {
        // Volumes that migrate from the in-tree driver are compared with this spelling.
        set(&mut context, keys::KIND, MANAGED);
    }
    if sku == DiskSku::PremiumV2Lrs {
        set(&mut context, CACHING_MODE, Caching::None.name());
    }
    if is_resize_required {
        set(&mut context, RESIZE_REQUIRED, TRUE);
    }
    context
}

/// What a volume's context says about its attach. Volumes that users or the in-tree driver made have few keys, so unknown ones
/// are not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeContext {
    /// The machine's cache.
    pub caching: Caching,
    /// How many machines may share the disk, if the context says so.
    pub max_shares: Option<u32>,
    /// How long an attach waits for others, in milliseconds: of this volume's batch alone.
    pub attach_delay_ms: Option<u64>,
    /// Whether the driver made the volume.
    pub is_ours: bool,
}

impl VolumeContext {
    /// Reads a context. `reads_only_in_tree` turns the cache of in-tree volumes from `ReadWrite` to `ReadOnly`.
    ///
    /// # Errors
    /// A value has not its form.
    pub fn parse(context: &Entries, reads_only_in_tree: bool) -> Result<Self> {
        let refuse = |key, value: &str, expected: String| Refusal::InvalidValue {
            key,
            value: value.to_owned(),
            expected,
        };
        let caching = match value(context, keys::CACHING_MODE) {
            None => Caching::ReadOnly,
            Some(name) => Caching::parse(name).ok_or_else(|| {
                refuse(keys::CACHING_MODE, name, format!("one of {}", CACHING_NAMES.join(", ")))
            })?,
        };
        let number = |key| {
            let parse =
                |text: &str| text.parse::<u64>().map_err(|_| refuse(key, text, "a whole number".to_owned()));
            value(context, key).map(parse).transpose()
        };
        let is_in_tree = value(context, keys::KIND) == Some(MANAGED);
        let is_weakened = reads_only_in_tree && is_in_tree && caching == Caching::ReadWrite;
        let max_shares = number(keys::MAX_SHARES)?;
        Ok(Self {
            caching: if is_weakened { Caching::ReadOnly } else { caching },
            max_shares: max_shares.map(|shares| u32::try_from(shares).unwrap_or(u32::MAX)),
            attach_delay_ms: number(keys::ATTACH_DELAY)?,
            is_ours: value(context, REQUESTED_SIZE).is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::Code;

    fn entries(list: &[(&str, &str)]) -> Entries {
        list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    /// CSI-036. Section 3.4: the context that a new volume gets.
    #[test]
    fn a_new_volume_keeps_its_parameters() {
        let class = entries(&[("skuName", "Premium_LRS"), ("Kind", "managed"), ("userAgent", "mine")]);
        let mutable = entries(&[("storageaccounttype", "PremiumV2_LRS")]);
        let context = of_new_volume(&class, &mutable, DiskSku::PremiumV2Lrs, 12, true);
        assert_eq!(
            context,
            entries(&[
                ("Kind", "Managed"),
                ("cachingmode", "None"),
                ("requestedsizegib", "12"),
                ("resizeRequired", "true"),
                ("storageaccounttype", "PremiumV2_LRS"),
                ("userAgent", "mine"),
            ])
        );
        let plain = of_new_volume(&Entries::new(), &Entries::new(), DiskSku::PremiumLrs, 1, false);
        assert_eq!(plain, entries(&[("requestedsizegib", "1")]));
    }

    /// CSI-036. Section 3.4, static volumes, and 3.9, step 4.
    #[test]
    fn contexts_of_static_and_in_tree_volumes_are_read() {
        let of = |list: &[(&str, &str)], weakened| VolumeContext::parse(&entries(list), weakened);
        let none = of(&[], false).unwrap();
        assert_eq!(
            (none.caching, none.max_shares, none.attach_delay_ms, none.is_ours),
            (Caching::ReadOnly, None, None, false)
        );
        let all = of(
            &[
                ("CachingMode", "ReadWrite"),
                ("maxShares", "2"),
                ("attachDiskInitialDelay", "5"),
                ("partition", "1"),
                ("requestedsizegib", "10"),
                ("kind", "Managed"),
            ],
            false,
        )
        .unwrap();
        assert_eq!(
            (all.caching, all.max_shares, all.attach_delay_ms, all.is_ours),
            (Caching::ReadWrite, Some(2), Some(5), true)
        );
        assert_eq!(
            of(&[("kind", "Managed"), ("cachingMode", "ReadWrite")], true).unwrap().caching,
            Caching::ReadOnly
        );
        assert_eq!(of(&[("cachingMode", "ReadWrite")], true).unwrap().caching, Caching::ReadWrite);
        for wrong in [("cachingMode", "readonly"), ("maxShares", "two"), ("attachDiskInitialDelay", "-1")] {
            assert_eq!(of(&[wrong], false).unwrap_err().code(), Code::InvalidArgument, "{wrong:?}");
        }
    }
}
