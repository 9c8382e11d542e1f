//! Images of machines.

use crate::field_error::Field;
use crate::object::object;
use crate::text::is_set;

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

/// A member that a source needs, and its name.
type RequiredMember<'a> = (&'static str, &'a Option<String>);

/// Validates an image: exactly one source, and complete.
pub(crate) fn check(image: Option<&Image>, field: &Field<'_>) {
    let Some(image) = image else { return };
    let mut sources: Vec<(Field<'_>, Vec<RequiredMember<'_>>)> = Vec::new();
    if let Some(it) = &image.marketplace {
        let members =
            [("publisher", &it.publisher), ("offer", &it.offer), ("sku", &it.sku), ("version", &it.version)];
        sources.push((field.child("marketplace"), members.into()));
    }
    if let Some(it) = &image.shared_gallery {
        let members = [
            ("subscriptionID", &it.subscription_id),
            ("resourceGroup", &it.resource_group),
            ("gallery", &it.gallery),
            ("name", &it.name),
            ("version", &it.version),
        ];
        sources.push((field.child("sharedGallery"), members.into()));
    }
    if let Some(it) = &image.compute_gallery {
        let mut members = vec![("gallery", &it.gallery), ("name", &it.name), ("version", &it.version)];
        // Both make it a user's own gallery, neither one a community gallery.
        if it.subscription_id.is_some() || it.resource_group.is_some() {
            members.extend([("subscriptionID", &it.subscription_id), ("resourceGroup", &it.resource_group)]);
        }
        sources.push((field.child("computeGallery"), members));
    }
    let has_id = image.id.is_some();
    field.required_if(
        !has_id && sources.is_empty(),
        "an image has an id, or is one of marketplace, computeGallery and sharedGallery",
    );
    for (source, _) in sources.iter().skip(usize::from(!has_id)) {
        source.forbidden("an image has one source: leave one of them");
    }
    field.child("id").required_if(has_id && !is_set(&image.id), "");
    for (source, members) in sources {
        for (member, value) in members {
            source.child(member).required_if(!is_set(value), "");
        }
    }
}
