//! Images of machines.

use crate::field_error::{FieldErrors, Path};
use crate::object::object;

object! {
    /// The image of a machine: one of an id, an image of the marketplace, or one of a gallery. Without any there is an image
    /// for the version of Kubernetes.
    Image {
        /// An image of a gallery of Azure Compute.
        compute_gallery: ComputeGalleryImage,
        /// The id of an image.
        id: String,
        /// An image of the marketplace.
        marketplace: MarketplaceImage,
        /// An image of a shared gallery. Deprecated: use computeGallery.
        shared_gallery: SharedGalleryImage,
    }
}

object! {
    /// An image of the marketplace.
    MarketplaceImage {
        /// The offer.
        #[schemars(required, length(min = 1))]
        offer: String,
        /// The publisher.
        #[schemars(required, length(min = 1))]
        publisher: String,
        /// The SKU.
        #[schemars(required, length(min = 1))]
        sku: String,
        /// Whether the image is of a third party, whose terms must have been accepted.
        #[schemars(extend("default" = false))]
        third_party_image: bool,
        /// The version.
        #[schemars(required, length(min = 1))]
        version: String,
    }
}

object! {
    /// An image of a shared gallery.
    SharedGalleryImage {
        /// The gallery.
        #[schemars(required, length(min = 1))]
        gallery: String,
        /// The name of the image.
        #[schemars(required, length(min = 1))]
        name: String,
        /// The offer of the image's purchase plan.
        offer: String,
        /// The publisher of the image's purchase plan.
        publisher: String,
        /// The resource group of the gallery.
        #[schemars(required, length(min = 1))]
        resource_group: String,
        /// The SKU of the image's purchase plan.
        sku: String,
        /// The subscription of the gallery.
        #[serde(rename = "subscriptionID")]
        #[schemars(required, length(min = 1))]
        subscription_id: String,
        /// The version.
        #[schemars(required, length(min = 1))]
        version: String,
    }
}

object! {
    /// An image of a gallery of Azure Compute. Without a subscription and a resource group it is a community gallery.
    ComputeGalleryImage {
        /// The gallery.
        #[schemars(required, length(min = 1))]
        gallery: String,
        /// The name of the image.
        #[schemars(required, length(min = 1))]
        name: String,
        /// The purchase plan of the image.
        plan: ImagePlan,
        /// The resource group of the gallery.
        resource_group: String,
        /// The subscription of the gallery.
        #[serde(rename = "subscriptionID")]
        subscription_id: String,
        /// The version.
        #[schemars(required, length(min = 1))]
        version: String,
    }
}

object! {
    /// The plan that an image was made from.
    ImagePlan {
        /// The offer.
        #[schemars(required, length(min = 1))]
        offer: String,
        /// The publisher.
        #[schemars(required, length(min = 1))]
        publisher: String,
        /// The SKU.
        #[schemars(required, length(min = 1))]
        sku: String,
    }
}

/// Validates an image: exactly one source, and complete.
pub(crate) fn check(image: Option<&Image>, path: &Path, errors: &mut FieldErrors) {
    let Some(image) = image else { return };
    let mut members: Vec<(Path, Option<&String>)> = Vec::new();
    let mut sources = Vec::new();
    if image.id.is_some() {
        sources.push(path.child("id"));
        members.push((path.child("id"), image.id.as_ref()));
    }
    if let Some(marketplace) = &image.marketplace {
        let path = path.child("marketplace");
        sources.push(path.clone());
        members.push((path.child("publisher"), marketplace.publisher.as_ref()));
        members.push((path.child("offer"), marketplace.offer.as_ref()));
        members.push((path.child("sku"), marketplace.sku.as_ref()));
        members.push((path.child("version"), marketplace.version.as_ref()));
    }
    if let Some(gallery) = &image.shared_gallery {
        let path = path.child("sharedGallery");
        sources.push(path.clone());
        members.push((path.child("subscriptionID"), gallery.subscription_id.as_ref()));
        members.push((path.child("resourceGroup"), gallery.resource_group.as_ref()));
        members.push((path.child("gallery"), gallery.gallery.as_ref()));
        members.push((path.child("name"), gallery.name.as_ref()));
        members.push((path.child("version"), gallery.version.as_ref()));
    }
    if let Some(gallery) = &image.compute_gallery {
        let path = path.child("computeGallery");
        sources.push(path.clone());
        members.push((path.child("gallery"), gallery.gallery.as_ref()));
        members.push((path.child("name"), gallery.name.as_ref()));
        members.push((path.child("version"), gallery.version.as_ref()));
        // Both make it a user's own gallery, neither one a community gallery.
        let (subscription, group) = (gallery.subscription_id.as_ref(), gallery.resource_group.as_ref());
        if subscription.is_some() || group.is_some() {
            members.push((path.child("subscriptionID"), subscription));
            members.push((path.child("resourceGroup"), group));
        }
    }
    if sources.is_empty() {
        errors
            .required(path, "an image has an id, or is one of marketplace, computeGallery and sharedGallery");
    }
    for source in sources.iter().skip(1) {
        errors.forbidden(source, "an image has one source: leave one of them");
    }
    for (path, member) in members {
        if !is_set(member) {
            errors.required(&path, "");
        }
    }
}

fn is_set(member: Option<&String>) -> bool {
    member.is_some_and(|text| !text.is_empty())
}
