//! How many volumes a node takes: what the scheduler and the machine's writer are given.
//!
//! The number of data disks of a size comes from Azure's list of sizes (`MaxDataDiskCount`); while that is not known, from
//! the size's family ([`super::size_families`]); for an unknown family it is [`UNKNOWN_SIZE`].

use super::size_families;

/// How many data disks a machine of an unknown size takes.
pub const UNKNOWN_SIZE: u32 = 16;

/// Where a number of data disks comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapacitySource {
    /// Azure's list of sizes.
    Published,
    /// The rule of the size's family.
    Family,
    /// Neither knows the size.
    Unknown,
}

/// The number of data disks that a machine takes, with its source. `published` is `MaxDataDiskCount`, if it was read.
pub fn max_data_disks(published: Option<u32>, size: Option<&str>) -> (u32, CapacitySource) {
    if let Some(published) = published {
        return (published, CapacitySource::Published);
    }
    match size.and_then(size_families::max_data_disks) {
        Some(disks) => (disks, CapacitySource::Family),
        None => (UNKNOWN_SIZE, CapacitySource::Unknown),
    }
}

/// What limits a node's volumes besides its size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reductions {
    /// The flag that sets the limit; negative means that it does not.
    pub flag: i64,
    /// Slots that are kept free.
    pub reserved: u32,
    /// Data disks of the machine that are not Kubernetes' volumes.
    pub foreign: u32,
}

/// The limit of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLimit {
    /// `max_volumes_per_node`, never negative. To the scheduler, 0 means that there is no limit.
    pub reported: i64,
    /// Whether the node takes no volume at all, although the scheduler cannot be given this: publishing has to refuse, and an
    /// event has to warn.
    pub is_closed: bool,
}

/// The limit of a node whose machine takes this many data disks. The flag goes before all else.
pub fn node_limit(max_data_disks: u32, reductions: Reductions) -> NodeLimit {
    if reductions.flag >= 0 {
        return NodeLimit { reported: reductions.flag, is_closed: false };
    }
    let left = max_data_disks.saturating_sub(reductions.reserved).saturating_sub(reductions.foreign);
    NodeLimit { reported: i64::from(left), is_closed: left == 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// CSI-048. Section 3.12, trap 5: Azure's list goes before the family's rule, and that before 16.
    #[test]
    fn azures_list_goes_before_the_family() {
        use CapacitySource::{Family, Published, Unknown};
        for (published, size, expected) in [
            (Some(12), Some("Standard_D2s_v3"), (12, Published)),
            (Some(0), Some("Standard_D2s_v3"), (0, Published)),
            (None, Some("Standard_D2s_v3"), (4, Family)),
            (None, Some("Standard_New"), (16, Unknown)),
            (None, None, (16, Unknown)),
        ] {
            assert_eq!(max_data_disks(published, size), expected, "{published:?} {size:?}");
        }
    }

    /// CSI-047. Section 3.12: the flag, reserved slots and foreign disks; traps 1 and 2: never negative, and closed at 0.
    #[test]
    fn a_limit_is_what_is_left_and_never_negative() {
        for (disks, flag, reserved, foreign, reported, is_closed) in [
            (8, -1, 0, 0, 8, false),
            (8, -1, 2, 1, 5, false),
            (8, 3, 2, 1, 3, false),
            (8, 0, 2, 1, 0, false),
            (4, -1, 4, 0, 0, true),
            (4, -1, 3, 7, 0, true),
            (0, -1, 0, 0, 0, true),
        ] {
            let limit = node_limit(disks, Reductions { flag, reserved, foreign });
            assert_eq!(
                (limit.reported, limit.is_closed),
                (reported, is_closed),
                "{disks} {flag} {reserved} {foreign}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_limit_is_negative_or_above_the_machine(disks in 0_u32..100, reserved: u32, foreign: u32) {
            let limit = node_limit(disks, Reductions { flag: -1, reserved, foreign });
            prop_assert!((0..=i64::from(disks)).contains(&limit.reported));
            prop_assert_eq!(limit.is_closed, limit.reported == 0);
        }
    }

    /// `docs/volumes/attach-limits.md` is made from the table: `UPDATE_DOCS=1 cargo test -p volume-planner capacity`.
    #[test]
    fn the_page_of_families_is_made_from_the_table() {
        let text = format!(
            "# How many volumes a node takes\n\n\
             A machine takes so many data disks as its size permits. The disk driver decides the number so:\n\n\
             1. The flag `--volume-attach-limit`, if it is not negative, is the limit, and nothing is subtracted.\n\
             2. Otherwise the size's number is `MaxDataDiskCount` in Azure's list of sizes. The controller reads the list at its start and daily, and\n   \
             writes the number to each Node of Azure that does not have it: `disk.csi.azure.com/max-data-disks`. Nodes have no rights in Azure.\n\
             3. While that list cannot be read, or lacks the size, the rule of the size's family holds (the table below).\n\
             4. A size without a family has {unknown}.\n\n\
             Slots that `--reserved-data-disk-slot-num` keeps free, and data disks that are no volumes, are subtracted; the result is\n\
             never negative. To the scheduler, 0 means that there is no limit: a node whose machine has no slot left reports 0, and refuses\n\
             every volume with ResourceExhausted. LUNs are below the number of the size, and below {luns}.\n\n\
             ## Families\n\n\
             Chosen to be at most what Azure's pages of sizes say, and fewer for some sizes. A size has the disks of the greatest number that is not\n\
             above its own: `Standard_D8s_v3` has number 8. With fewer processors (`Standard_E8-4s_v5`) the first number counts. The first\n\
             row that fits decides.\n\n\
             | letters | versions | not with | number: disks |\n|---|---|---|---|\n{rows}",
            unknown = UNKNOWN_SIZE,
            luns = crate::attach::disk_list::MAX_LUNS,
            rows = size_families::markdown_rows(),
        );
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/volumes/attach-limits.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(written == text, "{path} is not as the table says: run with UPDATE_DOCS=1");
    }
}
