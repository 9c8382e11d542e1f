//! The images of machines: the version behind `latest`, and the name of the system in it. Images that the catalogue
//! does not have get a version that looks like theirs.

use serde_json::Value;

use crate::compute::shared::public_gallery;
use crate::compute::tables::images;
use azure_engine::document::{fill_at, text};
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal, Result};
use azure_types::ResourceId;

/// An image named by id must exist: one of the group's, or one in a gallery. Marketplace images are not checked.
pub(crate) fn check(azure: &AzureState, storage: &Value, location: &str) -> Result<()> {
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
        false => Code::ours(404, "ImageNotFound")
            .says(format_args!("The Image '{id}' cannot be found in '{location}' region.")),
    })
}

fn not_in_gallery(id: &str, location: &str) -> Refusal {
    Code::azures(404, "GalleryImageNotFound").says(format_args!(
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
    /// The generation of machines that run it, `V1` or `V2`.
    pub(crate) generation: &'static str,
}

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
    let known = images::find(image("offer"), image("sku"));
    let asked = Some(image("version")).filter(|version| !version.is_empty() && *version != "latest");
    let exact = asked.or(known.map(|known| known.version)).unwrap_or("1.0.0").to_owned();
    let system = if windows { "Windows" } else { "Linux" };
    let offer = Some(image("offer")).filter(|offer| !offer.is_empty()).unwrap_or(system);
    let (name, version) = known.map_or((offer, exact.as_str()), |known| (known.os_name, known.os_version));
    // Images that the catalogue lacks are of the generation in their name, or the usual one of their system.
    let sku = image("sku").to_ascii_lowercase();
    let generation = match known {
        _ if sku.contains("gen2") || sku.ends_with("-g2") => "V2",
        _ if sku.contains("gen1") => "V1",
        Some(known) => known.generation,
        None if windows => "V1",
        None => "V2",
    };
    Image { windows, os_name: name.to_owned(), os_version: version.to_owned(), exact, generation }
}

/// Fills in the members of the system disk that follow from its image; returns that image.
pub(crate) fn fill_system_disk(storage: &mut Value) -> Image {
    let image = of(storage);
    fill_at(storage, "osDisk/osType", if image.windows { "Windows" } else { "Linux" });
    fill_at(storage, "osDisk/diskSizeGB", if image.windows { 127 } else { 30 });
    image
}

/// Puts the exact version of its image into a storage profile.
pub(crate) fn name_version(storage: &mut Value, image: &Image) {
    if let Some(reference) = storage.get_mut("imageReference").and_then(Value::as_object_mut) {
        reference.insert("exactVersion".into(), image.exact.as_str().into());
    }
}
