//! Marketplace images: which version `latest` is, and what the system in it calls itself. A small
//! catalogue with versions that publishers released in January 2026; other images get a version that
//! looks like theirs.

use serde_json::Value;

use crate::compute::shared::public_gallery;
use azure_engine::code::Code;
use azure_engine::document::text;
use azure_engine::error::Refusal;
use azure_engine::provider::AzureState;
use azure_types::ResourceId;

const GALLERY_IMAGE_NOT_FOUND: Code = Code::azures(404, "GalleryImageNotFound");
const IMAGE_NOT_FOUND: Code = Code::ours(404, "ImageNotFound");

/// An image that is named by an id must be there: one of the group's, or one in a gallery. Those of the marketplace are taken
/// as they are named.
pub(crate) fn check(azure: &AzureState, storage: &Value, location: &str) -> Result<(), Refusal> {
    for member in ["communityGalleryImageId", "sharedGalleryImageId"] {
        let named = text(storage, &format!("imageReference/{member}"));
        if let Some(id) = named.filter(|id| !public_gallery::has(azure, id, location)) {
            return Err(not_in_gallery(id, location));
        }
    }
    let Some(id) = text(storage, "imageReference/id").and_then(|id| ResourceId::parse(id).ok()) else {
        return Ok(());
    };
    // `latest` is any version of the image.
    let wanted = match id.parent() {
        Some(image) if id.name().eq_ignore_ascii_case("latest") => image,
        _ => id.clone(),
    };
    let gallery = id.resource_type().to_ascii_lowercase().contains("/galleries/");
    if azure.store.get(&wanted).is_some() || azure.subscription(id.subscription_id()).is_none() {
        return Ok(());
    }
    Err(match gallery {
        true => not_in_gallery(id.as_str(), location),
        false => {
            IMAGE_NOT_FOUND.says(format_args!("The Image '{id}' cannot be found in '{location}' region."))
        }
    })
}

fn not_in_gallery(id: &str, location: &str) -> Refusal {
    GALLERY_IMAGE_NOT_FOUND.says(format_args!(
        "The gallery image {id} is not available in {location} region. Please contact image owner to replicate to this region, \
         or change your requested region."
    ))
}

/// What an image holds.
pub(crate) struct Image {
    pub(crate) windows: bool,
    /// The full version behind `latest`.
    pub(crate) exact: String,
    /// As the guest agent reports the system.
    pub(crate) os_name: String,
    pub(crate) os_version: String,
}

struct Known {
    offer: &'static str,
    /// How the sku begins.
    sku: &'static str,
    exact: &'static str,
    os_name: &'static str,
    os_version: &'static str,
}

const KNOWN: [Known; 6] = [
    Known {
        offer: "WindowsServer",
        sku: "2019-datacenter",
        exact: "17763.8276.260109",
        os_name: "Windows Server 2019 Datacenter",
        os_version: "10.0.17763.8276",
    },
    Known {
        offer: "WindowsServer",
        sku: "2022-datacenter",
        exact: "20348.4648.260108",
        os_name: "Windows Server 2022 Datacenter",
        os_version: "10.0.20348.4648",
    },
    Known {
        offer: "WindowsServer",
        sku: "2025-datacenter",
        exact: "26100.32230.260111",
        os_name: "Windows Server 2025 Datacenter",
        os_version: "10.0.26100.32230",
    },
    Known {
        offer: "0001-com-ubuntu-server-jammy",
        sku: "22_04",
        exact: "22.04.202601160",
        os_name: "ubuntu",
        os_version: "22.04",
    },
    Known {
        offer: "ubuntu-24_04-lts",
        sku: "",
        exact: "24.04.202601160",
        os_name: "ubuntu",
        os_version: "24.04",
    },
    Known { offer: "debian-12", sku: "", exact: "0.20260112.2355", os_name: "debian", os_version: "12.13" },
];

/// Versions of the guest agents of Windows and Linux, as released in January 2026.
pub(crate) fn agent_version(windows: bool) -> &'static str {
    if windows { "2.7.41491.1149" } else { "2.15.0.1" }
}

/// Reads a storage profile: its image, and which system that is.
pub(crate) fn of(storage: &Value) -> Image {
    let image = |member: &str| text(storage, &format!("imageReference/{member}")).unwrap_or_default();
    let windows = match text(storage, "osDisk/osType") {
        Some(given) => given.eq_ignore_ascii_case("Windows"),
        None => image("publisher").to_ascii_lowercase().contains("windows"),
    };
    let sku = image("sku").to_ascii_lowercase();
    let known = KNOWN
        .iter()
        .find(|known| known.offer.eq_ignore_ascii_case(image("offer")) && sku.starts_with(known.sku));
    let asked = Some(image("version")).filter(|version| !version.is_empty() && *version != "latest");
    let exact = asked.or(known.map(|known| known.exact)).unwrap_or("1.0.0").to_owned();
    match known {
        Some(known) => Image {
            windows,
            exact,
            os_name: known.os_name.to_owned(),
            os_version: known.os_version.to_owned(),
        },
        None => {
            let system = if windows { "Windows" } else { "Linux" };
            let offer = Some(image("offer")).filter(|offer| !offer.is_empty()).unwrap_or(system);
            Image { windows, os_name: offer.to_owned(), os_version: exact.clone(), exact }
        }
    }
}
