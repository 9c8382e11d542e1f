//! Images of the marketplace, in versions that publishers released in January 2026 or before. Machines can be created
//! from other images, too.

/// An image.
pub(crate) struct MarketplaceImage {
    pub(crate) publisher: &'static str,
    pub(crate) offer: &'static str,
    pub(crate) sku: &'static str,
    pub(crate) version: &'static str,
    /// As the guest agent reports the system.
    pub(crate) os_name: &'static str,
    pub(crate) os_version: &'static str,
    pub(crate) generation: &'static str,
}

impl MarketplaceImage {
    /// `Windows` or `Linux`.
    pub(crate) fn system(&self) -> &'static str {
        if self.os_name.starts_with("Windows") { "Windows" } else { "Linux" }
    }
}

const fn linux(
    [publisher, offer, sku, version]: [&'static str; 4],
    [os_name, os_version]: [&'static str; 2],
    generation: &'static str,
) -> MarketplaceImage {
    MarketplaceImage { publisher, offer, sku, version, os_name, os_version, generation }
}

const fn windows(sku: &'static str, version: &'static str, os: [&'static str; 2]) -> MarketplaceImage {
    linux(["MicrosoftWindowsServer", "WindowsServer", sku, version], os, "V1")
}

pub(crate) static IMAGES: [MarketplaceImage; 9] = [
    linux(["Canonical", "ubuntu-24_04-lts", "server", "24.04.202601160"], ["ubuntu", "24.04"], "V2"),
    linux(
        ["Canonical", "0001-com-ubuntu-server-jammy", "22_04-lts-gen2", "22.04.202601160"],
        ["ubuntu", "22.04"],
        "V2",
    ),
    linux(["Debian", "debian-12", "12-gen2", "0.20260112.2355"], ["debian", "12.13"], "V2"),
    windows("2019-datacenter", "17763.8276.260109", ["Windows Server 2019 Datacenter", "10.0.17763.8276"]),
    windows("2022-datacenter", "20348.4648.260108", ["Windows Server 2022 Datacenter", "10.0.20348.4648"]),
    windows("2025-datacenter", "26100.32230.260111", ["Windows Server 2025 Datacenter", "10.0.26100.32230"]),
    linux(["cncf-upstream", "capi", "ubuntu-2204-gen1", "130.3.20240717"], ["ubuntu", "22.04"], "V1"),
    linux(["cncf-upstream", "capi", "ubuntu-2204-gen1", "129.7.20240717"], ["ubuntu", "22.04"], "V1"),
    linux(
        ["cncf-upstream", "capi-windows", "windows-2019-containerd-gen1", "130.3.20240717"],
        ["Windows Server 2019 Datacenter", "10.0.17763.8276"],
        "V1",
    ),
];

/// An image with the same system. Skus of an offer with different systems differ in their beginnings.
pub(crate) fn find(offer: &str, sku: &str) -> Option<&'static MarketplaceImage> {
    let stem = |sku: &str| sku.split('-').next().unwrap_or_default().to_ascii_lowercase();
    let mut of_offer = IMAGES.iter().filter(|image| image.offer.eq_ignore_ascii_case(offer));
    let same = of_offer.clone().find(|image| stem(image.sku) == stem(sku));
    same.or_else(|| of_offer.next().filter(|image| of_offer.all(|other| other.os_name == image.os_name)))
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn skus_of_an_offer_have_its_system() {
        for (offer, sku, expected) in [
            ("windowsserver", "2022-Datacenter-Core", Some("20348.4648.260108")),
            ("WindowsServer", "2016-Datacenter", None),
            ("ubuntu-24_04-lts", "minimal", Some("24.04.202601160")),
            ("nothing", "server", None),
        ] {
            assert_eq!(find(offer, sku).map(|image| image.version), expected, "{offer} {sku}");
        }
    }
}
