//! How disks appear on a machine.

/// How disks appear on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// SCSI, with the links of udev's rules for Azure.
    ScsiWithLinks,
    /// SCSI without links: data disks are at a host above 3.
    Scsi,
    /// NVMe without links.
    Nvme,
    /// NVMe with the links of azure-vm-utils.
    NvmeWithLinks,
    /// Links alone, without anything in sysfs: loop devices in the place of disks.
    LinksAlone,
}

impl Layout {
    pub const ALL: [Self; 5] =
        [Self::ScsiWithLinks, Self::Scsi, Self::Nvme, Self::NvmeWithLinks, Self::LinksAlone];

    pub fn is_nvme(self) -> bool {
        matches!(self, Self::Nvme | Self::NvmeWithLinks)
    }

    pub(super) fn is_scsi(self) -> bool {
        matches!(self, Self::ScsiWithLinks | Self::Scsi)
    }

    /// The link for a LUN.
    pub(super) fn link(self, lun: u8) -> Option<String> {
        match self {
            Self::ScsiWithLinks | Self::LinksAlone => Some(format!("/dev/disk/azure/scsi1/lun{lun}")),
            Self::NvmeWithLinks => Some(format!("/dev/disk/azure/data/by-lun/{lun}")),
            Self::Scsi | Self::Nvme => None,
        }
    }
}
