//! Sizes of machines with their published figures ("Sizes for virtual machines in Azure"). Other sizes are accepted,
//! too; general rules give their figures.

/// One size.
pub(crate) struct Size {
    pub(crate) name: &'static str,
    pub(crate) family: &'static str,
    pub(crate) cores: u64,
    pub(crate) memory_gib: u64,
    pub(crate) disks: usize,
    pub(crate) interfaces: u64,
    /// Temporary storage in GiB; 0 for sizes without.
    pub(crate) temporary_gib: u64,
}

impl Size {
    /// Whether it takes premium disks: an `s` behind the number of cores.
    pub(crate) fn premium(&self) -> bool {
        features(self.name).contains('s')
    }

    /// Whether its processor is an Arm one: a `p` behind the number of cores.
    pub(crate) fn arm(&self) -> bool {
        features(self.name).contains('p')
    }
}

/// The small letters behind the number of cores in a size's name.
pub(crate) fn features(name: &str) -> &str {
    let series = name.split('_').nth(1).unwrap_or_default();
    let letters = series.trim_start_matches(|c: char| !c.is_ascii_digit());
    letters.trim_start_matches(|c: char| c.is_ascii_digit())
}

const fn size(
    name: &'static str,
    family: &'static str,
    cores: u64,
    memory_gib: u64,
    disks: usize,
    interfaces: u64,
    temporary_gib: u64,
) -> Size {
    Size { name, family, cores, memory_gib, disks, interfaces, temporary_gib }
}

pub(crate) const SIZES: [Size; 48] = [
    size("Standard_B1s", "standardBSFamily", 1, 1, 2, 2, 4),
    size("Standard_B1ms", "standardBSFamily", 1, 2, 2, 2, 4),
    size("Standard_B2s", "standardBSFamily", 2, 4, 4, 3, 8),
    size("Standard_B2ms", "standardBSFamily", 2, 8, 4, 3, 16),
    size("Standard_B4ms", "standardBSFamily", 4, 16, 8, 4, 32),
    size("Standard_B8ms", "standardBSFamily", 8, 32, 16, 4, 64),
    size("Standard_B2s_v2", "standardBsv2Family", 2, 8, 4, 2, 0),
    size("Standard_B2ps_v2", "standardBpsv2Family", 2, 8, 4, 2, 0),
    size("Standard_D2_v3", "standardDv3Family", 2, 8, 4, 2, 50),
    size("Standard_D2s_v3", "standardDSv3Family", 2, 8, 4, 2, 16),
    size("Standard_D4s_v3", "standardDSv3Family", 4, 16, 8, 2, 32),
    size("Standard_D8s_v3", "standardDSv3Family", 8, 32, 16, 4, 64),
    size("Standard_D16s_v3", "standardDSv3Family", 16, 64, 32, 8, 128),
    size("Standard_D32s_v3", "standardDSv3Family", 32, 128, 32, 8, 256),
    size("Standard_D64s_v3", "standardDSv3Family", 64, 256, 32, 8, 512),
    size("Standard_D2s_v5", "standardDSv5Family", 2, 8, 4, 2, 0),
    size("Standard_D4s_v5", "standardDSv5Family", 4, 16, 8, 2, 0),
    size("Standard_D8s_v5", "standardDSv5Family", 8, 32, 16, 4, 0),
    size("Standard_D16s_v5", "standardDSv5Family", 16, 64, 32, 8, 0),
    size("Standard_D32s_v5", "standardDSv5Family", 32, 128, 32, 8, 0),
    size("Standard_D2ds_v5", "standardDDSv5Family", 2, 8, 4, 2, 75),
    size("Standard_D4ds_v5", "standardDDSv5Family", 4, 16, 8, 2, 150),
    size("Standard_D8ds_v5", "standardDDSv5Family", 8, 32, 16, 4, 300),
    size("Standard_D2as_v5", "standardDASv5Family", 2, 8, 4, 2, 0),
    size("Standard_D4as_v5", "standardDASv5Family", 4, 16, 8, 2, 0),
    size("Standard_D8as_v5", "standardDASv5Family", 8, 32, 16, 4, 0),
    size("Standard_D2ps_v5", "standardDPSv5Family", 2, 8, 4, 2, 0),
    size("Standard_D4ps_v5", "standardDPSv5Family", 4, 16, 8, 2, 0),
    size("Standard_D2s_v6", "standardDSv6Family", 2, 8, 8, 2, 0),
    size("Standard_D4s_v6", "standardDSv6Family", 4, 16, 12, 2, 0),
    size("Standard_E2s_v3", "standardESv3Family", 2, 16, 4, 2, 32),
    size("Standard_E4s_v3", "standardESv3Family", 4, 32, 8, 2, 64),
    size("Standard_E2s_v5", "standardESv5Family", 2, 16, 4, 2, 0),
    size("Standard_E4s_v5", "standardESv5Family", 4, 32, 8, 2, 0),
    size("Standard_E8s_v5", "standardESv5Family", 8, 64, 16, 4, 0),
    size("Standard_E16s_v5", "standardESv5Family", 16, 128, 32, 8, 0),
    size("Standard_E4as_v5", "standardEASv5Family", 4, 32, 8, 2, 0),
    size("Standard_F2s_v2", "standardFSv2Family", 2, 4, 4, 2, 16),
    size("Standard_F4s_v2", "standardFSv2Family", 4, 8, 8, 2, 32),
    size("Standard_F8s_v2", "standardFSv2Family", 8, 16, 16, 4, 64),
    size("Standard_F16s_v2", "standardFSv2Family", 16, 32, 32, 4, 128),
    size("Standard_L8s_v3", "standardLSv3Family", 8, 64, 16, 4, 80),
    size("Standard_L16s_v3", "standardLSv3Family", 16, 128, 32, 8, 160),
    size("Standard_NC6s_v3", "standardNCSv3Family", 6, 112, 12, 4, 736),
    size("Standard_NC24ads_A100_v4", "StandardNCADSA100v4Family", 24, 220, 8, 2, 64),
    size("Standard_NV36ads_A10_v5", "StandardNVADSA10v5Family", 36, 440, 32, 8, 720),
    size("Standard_DC2as_v5", "standardDCASv5Family", 2, 8, 4, 2, 0),
    size("Standard_DC4as_v5", "standardDCASv5Family", 4, 16, 8, 2, 0),
];

/// The size of a name, in any case.
pub(crate) fn find(name: &str) -> Option<&'static Size> {
    SIZES.iter().find(|size| size.name.eq_ignore_ascii_case(name))
}

/// How many cores a size has: by the table, or by the number in its name.
pub(crate) fn cores(name: &str) -> u64 {
    let by_name = || {
        let series = name.split('_').nth(1)?;
        let digits: String =
            series.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    find(name).map(|size| size.cores).or_else(by_name).unwrap_or(1)
}

/// The family of a size: by the table, or by its letters.
pub(crate) fn family(name: &str) -> String {
    match find(name) {
        Some(size) => size.family.to_owned(),
        None => {
            let series = name.split_once('_').map_or(name, |(_, series)| series);
            let letters: String = series.chars().filter(|c| !c.is_ascii_digit() && *c != '_').collect();
            format!("standard{letters}Family")
        }
    }
}

/// Whether a size has Write Accelerator: those of the M series do.
pub(crate) fn accelerates_writes(name: &str) -> bool {
    let mut series = name.split('_').nth(1).unwrap_or_default().chars();
    matches!(series.next(), Some('M' | 'm')) && series.next().is_some_and(|c| c.is_ascii_digit())
}

/// How many data disks a size takes: by the table, or two for each core within bounds.
pub(crate) fn most_disks(name: &str) -> usize {
    let by_cores = || usize::try_from(cores(name).saturating_mul(2)).unwrap_or(64).clamp(4, 64);
    find(name).map_or_else(by_cores, |size| size.disks)
}

#[cfg(test)]
mod tests {
    use super::{cores, family, find, most_disks};

    #[test]
    fn sizes_are_known_or_read_by_their_names() {
        for (name, count, disks) in [
            ("Standard_D2s_v3", 2, 4),
            ("standard_d64s_V3", 64, 32),
            ("Standard_D48s_v5", 48, 64),
            ("Standard_NC24ads_A100_v4", 24, 8),
            ("x", 1, 4),
        ] {
            assert_eq!((cores(name), most_disks(name)), (count, disks), "{name}");
        }
        assert_eq!(family("Standard_D48s_v5"), "standardDsvFamily");
        assert!(find("Standard_D2ps_v5").is_some_and(|size| size.arm() && size.premium()));
        assert!(find("Standard_D2_v3").is_some_and(|size| !size.arm() && !size.premium()));
    }
}
