//! Kinds of storage accounts: performance, generation and replication.

use super::size::GIB;

/// Kinds of accounts and their replication (Azure REST reference, "Storage Accounts", `SkuName`).
pub const SKU_NAMES: &[&str] = &[
    "Standard_LRS",
    "Standard_ZRS",
    "Standard_GRS",
    "Standard_GZRS",
    "Standard_RAGRS",
    "Standard_RAGZRS",
    "Premium_LRS",
    "Premium_ZRS",
    "StandardV2_LRS",
    "StandardV2_ZRS",
    "StandardV2_GRS",
    "StandardV2_GZRS",
    "PremiumV2_LRS",
    "PremiumV2_ZRS",
];

/// The least sizes of shares.
const LEAST_GIB_OF_PREMIUM: u64 = 100;
const LEAST_GIB_OF_VERSION_2: u64 = 32;
/// The size of a share whose request names none.
pub const DEFAULT_GIB: u64 = 100;

/// A kind of account, such as `StandardV2_LRS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountSku(&'static str);

impl AccountSku {
    /// A new account of a class without a kind.
    pub const STANDARD_LRS: Self = Self("Standard_LRS");
    /// The same for NFS.
    pub const PREMIUM_LRS: Self = Self("Premium_LRS");

    /// Reads a kind, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        let name = SKU_NAMES.iter().find(|name| name.eq_ignore_ascii_case(text))?;
        Some(Self(name))
    }

    /// As Azure writes it.
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// Whether it has solid-state disks.
    pub fn is_premium(self) -> bool {
        self.0.starts_with("Premium")
    }

    /// Whether size, operations and bandwidth are provisioned apart.
    pub fn is_version_2(self) -> bool {
        self.0.contains("V2_")
    }

    /// The `kind` of its accounts (section 4.3).
    pub fn kind(self) -> &'static str {
        if self.is_premium() || self.is_version_2() { "FileStorage" } else { "StorageV2" }
    }

    /// The least size of its shares in GiB.
    pub fn least_gib(self) -> u64 {
        match (self.is_version_2(), self.is_premium()) {
            (true, _) => LEAST_GIB_OF_VERSION_2,
            (false, true) => LEAST_GIB_OF_PREMIUM,
            (false, false) => 1,
        }
    }

    /// Operations a second and MiB a second of a share of this size; `None` where they are not provisioned apart (section 4.3).
    pub fn performance(self, gib: u64) -> Option<(u64, u64)> {
        if !self.is_version_2() {
            return None;
        }
        Some(match self.is_premium() {
            true => ((3_000 + gib).min(102_400), (100 + gib.div_ceil(10)).min(10_340)),
            false => ((1_000 + gib.div_ceil(5)).min(50_000), (60 + gib.div_ceil(50)).min(5_120)),
        })
    }
}

/// Bytes in whole GiB, rounded up.
pub fn gib_of(bytes: u64) -> u64 {
    bytes.div_ceil(GIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FILE-003. Section 4.3: kinds, least sizes, and what a size brings in accounts of version 2.
    #[test]
    fn a_kind_has_its_sizes_and_its_performance() {
        for (name, kind, least, of_hundred) in [
            ("standard_lrs", "StorageV2", 1, None),
            ("Standard_RAGZRS", "StorageV2", 1, None),
            ("Premium_LRS", "FileStorage", 100, None),
            ("StandardV2_GZRS", "FileStorage", 32, Some((1_020, 62))),
            ("PremiumV2_ZRS", "FileStorage", 32, Some((3_100, 110))),
        ] {
            let sku = AccountSku::parse(name).unwrap();
            assert_eq!(
                (sku.kind(), sku.least_gib(), sku.performance(100)),
                (kind, least, of_hundred),
                "{name}"
            );
        }
        assert_eq!(AccountSku::parse("Premium"), None);
        let most = u64::from(u32::MAX);
        assert_eq!(AccountSku::parse("StandardV2_LRS").unwrap().performance(most), Some((50_000, 5_120)));
        assert_eq!(AccountSku::parse("PremiumV2_LRS").unwrap().performance(most), Some((102_400, 10_340)));
        assert_eq!(AccountSku::parse("StandardV2_LRS").unwrap().performance(101), Some((1_021, 63)));
    }
}
