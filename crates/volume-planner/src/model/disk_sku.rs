//! Kinds of managed disks: one row each.

use super::error::{Refusal, Result};

/// The key of a class for the SKU.
pub const SKU_NAME: &str = "skuName";

/// A kind of managed disk (Azure REST reference, "Disks", `DiskStorageAccountTypes`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiskSku {
    /// A hard disk.
    StandardLrs,
    /// A standard SSD.
    StandardSsdLrs,
    /// A standard SSD in all zones of the region.
    StandardSsdZrs,
    /// A premium SSD.
    PremiumLrs,
    /// A premium SSD in all zones of the region.
    PremiumZrs,
    /// A premium SSD whose operations and throughput are chosen.
    PremiumV2Lrs,
    /// An ultra disk.
    UltraSsdLrs,
}

/// What is special about a kind.
struct Row {
    sku: DiskSku,
    name: &'static str,
    is_on_stack: bool,
    is_premium: bool,
    /// Operations, throughput and sector size are chosen, and no machine caches it.
    is_provisioned: bool,
    /// The largest size (Azure documentation, "Azure managed disk types").
    maximum_gib: u64,
}

const ROWS: [Row; 7] = [
    kind(DiskSku::StandardLrs, "Standard_LRS").on_stack(),
    kind(DiskSku::StandardSsdLrs, "StandardSSD_LRS"),
    kind(DiskSku::StandardSsdZrs, "StandardSSD_ZRS"),
    kind(DiskSku::PremiumLrs, "Premium_LRS").premium().on_stack(),
    kind(DiskSku::PremiumZrs, "Premium_ZRS").premium(),
    kind(DiskSku::PremiumV2Lrs, "PremiumV2_LRS").premium().provisioned(),
    kind(DiskSku::UltraSsdLrs, "UltraSSD_LRS").provisioned(),
];

const fn kind(sku: DiskSku, name: &'static str) -> Row {
    Row { sku, name, is_on_stack: false, is_premium: false, is_provisioned: false, maximum_gib: 32_767 }
}

impl Row {
    const fn on_stack(mut self) -> Self {
        self.is_on_stack = true;
        self
    }

    const fn premium(mut self) -> Self {
        self.is_premium = true;
        self
    }

    const fn provisioned(mut self) -> Self {
        self.is_provisioned = true;
        self.maximum_gib = 65_536;
        self
    }
}

/// The names of all kinds, as tables show them.
pub const SKU_NAMES: &[&str] =
    &[ROWS[0].name, ROWS[1].name, ROWS[2].name, ROWS[3].name, ROWS[4].name, ROWS[5].name, ROWS[6].name];

impl DiskSku {
    /// The kind without a parameter.
    pub const fn default_for(is_stack: bool) -> Self {
        if is_stack { Self::StandardLrs } else { Self::StandardSsdLrs }
    }

    /// The kind of this name, in its exact case.
    pub fn parse(name: &str) -> Option<Self> {
        ROWS.iter().find(|row| row.name == name).map(|row| row.sku)
    }

    /// The kind of this name in a cloud.
    ///
    /// # Errors
    /// There is no such kind, or Azure Stack has not got it.
    pub fn from_parameter(name: &str, is_stack: bool) -> Result<Self> {
        let sku = Self::parse(name).ok_or_else(|| Refusal::InvalidValue {
            key: SKU_NAME,
            value: name.to_owned(),
            expected: format!("one of {}", SKU_NAMES.join(", ")),
        })?;
        if is_stack && !sku.row().is_on_stack {
            return Err(Refusal::UnsupportedOnStack {
                key: SKU_NAME,
                value: name.to_owned(),
                remedy: "use Standard_LRS or Premium_LRS",
            });
        }
        Ok(sku)
    }

    fn row(self) -> &'static Row {
        // The array has a row for each kind, in their order; a test holds it.
        &ROWS[self as usize]
    }

    /// Azure's name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether the disk is in all zones of its region.
    pub fn is_zone_redundant(self) -> bool {
        self.name().ends_with("ZRS")
    }

    /// Whether operations, throughput and sector size are chosen.
    pub fn is_provisioned(self) -> bool {
        self.row().is_provisioned
    }

    /// Whether it is a premium SSD of any kind.
    pub fn is_premium(self) -> bool {
        self.row().is_premium
    }

    /// Whether no machine caches such a disk: one with provisioned performance, or a premium one that machines share.
    pub fn is_uncached(self, max_shares: u32) -> bool {
        self.is_provisioned() || (self.is_premium() && max_shares > 1)
    }

    /// The largest size in GiB.
    pub fn maximum_gib(self) -> u64 {
        self.row().maximum_gib
    }
}

/// The size from which on no machine caches a disk, in GiB (Azure documentation, "Disk caching").
pub const UNCACHED_FROM_GIB: u64 = 4_096;

/// A machine's cache for a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Caching {
    /// No cache.
    None,
    /// Reads are cached.
    ReadOnly,
    /// Reads and writes are cached.
    ReadWrite,
}

/// The names of all caches.
pub const CACHING_NAMES: &[&str] = &["None", "ReadOnly", "ReadWrite"];

impl Caching {
    /// Azure's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::ReadOnly => "ReadOnly",
            Self::ReadWrite => "ReadWrite",
        }
    }

    /// The cache of this name, in its exact case.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::None, Self::ReadOnly, Self::ReadWrite].into_iter().find(|one| one.name() == name)
    }

    /// The cache that a disk of this kind and size is attached with, when so many machines may have it.
    #[must_use]
    pub fn at_attach(self, sku: Option<DiskSku>, size_gib: Option<u64>, max_shares: u32) -> Self {
        let is_large = size_gib.is_some_and(|size| size >= UNCACHED_FROM_GIB);
        if is_large || sku.is_some_and(|sku| sku.is_uncached(max_shares)) { Self::None } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_of_a_kind_is_its_own() {
        for (at, row) in ROWS.iter().enumerate() {
            assert_eq!(row.sku as usize, at);
            assert_eq!(DiskSku::parse(row.name), Some(row.sku));
        }
        assert_eq!(DiskSku::parse("premium_lrs"), None);
    }

    /// CSI-011. Section 3.4: the default and the kinds of Azure Stack.
    #[test]
    fn azure_stack_has_two_kinds() {
        assert_eq!(DiskSku::default_for(false).name(), "StandardSSD_LRS");
        assert_eq!(DiskSku::default_for(true).name(), "Standard_LRS");
        let on_stack: Vec<_> =
            SKU_NAMES.iter().filter(|name| DiskSku::from_parameter(name, true).is_ok()).collect();
        assert_eq!(on_stack, [&"Standard_LRS", &"Premium_LRS"]);
    }

    /// CSI-003.
    /// Sections 3.9 and 3.18: caching is forced to `None` from 4096 GiB on, for provisioned performance, and for shared premium disks.
    #[test]
    fn large_provisioned_and_shared_disks_are_not_cached() {
        for (sku, size, shares, expected) in [
            (Some(DiskSku::PremiumLrs), Some(4_095), 1, Caching::ReadOnly),
            (Some(DiskSku::PremiumLrs), Some(4_096), 1, Caching::None),
            (Some(DiskSku::PremiumV2Lrs), Some(10), 1, Caching::None),
            (Some(DiskSku::UltraSsdLrs), None, 1, Caching::None),
            (Some(DiskSku::PremiumZrs), Some(10), 2, Caching::None),
            (Some(DiskSku::StandardSsdZrs), Some(10), 2, Caching::ReadOnly),
            (None, None, 1, Caching::ReadOnly),
        ] {
            assert_eq!(Caching::ReadOnly.at_attach(sku, size, shares), expected, "{sku:?} {size:?} {shares}");
        }
    }
}
