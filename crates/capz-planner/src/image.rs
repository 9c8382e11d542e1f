//! Images of machines: those that are declared, and the defaults for a version of Kubernetes.

use std::collections::BTreeMap;

use capz_api::machine::{ComputeGalleryImage, Image, ImagePlan, MarketplaceImage};
use serde_json::{Value, json};

use crate::kubernetes_version::{KubernetesVersion, VersionError};

/// The operating system other than Linux, as disks name it.
pub const WINDOWS: &str = "Windows";

/// The community gallery in which Cluster API publishes images.
const GALLERY: &str = "ClusterAPI-f72ceb4f-5159-4c26-a0fe-2ea738f0d019";
const LINUX_IMAGE: &str = "capi-ubun2-2404";
/// The prefix and the suffix of the name of an image of Windows; the year of its release is between them.
const WINDOWS_IMAGE: (&str, &str) = ("capi-win-", "-containerd");
const WINDOWS_YEAR: &str = "2022";

/// Annotations of a machine that select its image of Windows.
const RUNTIME: &str = "runtime";
const WINDOWS_SERVER_VERSION: &str = "windowsServerVersion";

/// Images in the marketplace for versions of Kubernetes: of Ubuntu 22.04, of Windows Server 2019. A machine of such a
/// version that is created again gets the image that its neighbours have.
const MARKETPLACE: [(&str, &str, &str); 26] = [
    ("1.27.14", "127.14.20240517", "127.14.20240515"),
    ("1.27.15", "127.15.20240612", ""),
    ("1.27.16", "127.16.20240717", ""),
    ("1.28.1", "128.1.20230829", "128.1.20230830"),
    ("1.28.2", "128.2.20230918", "128.2.20230918"),
    ("1.28.3", "128.3.20231023", "128.3.20231023"),
    ("1.28.4", "128.4.20231130", "128.4.20231122"),
    ("1.28.5", "128.5.20240102", "128.5.20240102"),
    ("1.28.6", "128.6.20240201", "128.6.20240201"),
    ("1.28.7", "128.7.20240223", "128.7.20240223"),
    ("1.28.8", "128.8.20240327", "128.8.20240327"),
    ("1.28.9", "128.9.20240418", "128.9.20240418"),
    ("1.28.10", "128.10.20240517", "128.10.20240515"),
    ("1.28.11", "128.11.20240612", "128.11.20240612"),
    ("1.28.12", "128.12.20240717", "128.12.20240717"),
    ("1.29.1", "129.1.20240206", "129.1.20240201"),
    ("1.29.2", "129.2.20240223", "129.2.20240223"),
    ("1.29.3", "129.3.20240327", "129.3.20240327"),
    ("1.29.4", "129.4.20240418", "129.4.20240418"),
    ("1.29.5", "129.5.20240517", "129.5.20240515"),
    ("1.29.6", "129.6.20240612", "129.6.20240612"),
    ("1.29.7", "129.7.20240717", "129.7.20240717"),
    ("1.30.0", "130.0.20240506", "130.0.20240418"),
    ("1.30.1", "130.1.20240517", "130.1.20240515"),
    ("1.30.2", "130.2.20240612", "130.2.20240612"),
    ("1.30.3", "130.3.20240717", "130.3.20240717"),
];

/// Why there is no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The version of Kubernetes is invalid.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// There are no images of Windows with this container runtime.
    #[error("unsupported runtime {0}: leave the annotation runtime away, or say containerd")]
    Runtime(String),
    /// There are no images of this release of Windows.
    #[error(
        "unsupported osAndVersion {0}: leave the annotation windowsServerVersion away, or say windows- and a year"
    )]
    WindowsServer(String),
    /// The image is empty.
    #[error("the image has neither an id nor is it one of marketplace, computeGallery and sharedGallery")]
    Empty,
}

/// The image of a machine: the declared one, otherwise the one for the version of Kubernetes that its Machine or
/// MachinePool has. `annotations` are those of the AzureMachine or AzureMachinePool.
///
/// # Errors
/// No image is declared and there is no default for this version, or for these annotations.
pub fn choose(
    declared: Option<&Image>,
    os_type: Option<&str>,
    version: Option<&str>,
    annotations: &BTreeMap<String, String>,
) -> Result<Image, ImageError> {
    if let Some(image) = declared {
        return Ok(image.clone());
    }
    let version = KubernetesVersion::parse(version.unwrap_or_default())?.to_string();
    let windows = os_type == Some(WINDOWS);
    let (name, offer, sku) = if windows {
        (windows_image(annotations)?, "capi-windows", "windows-2019-containerd-gen1")
    } else {
        (LINUX_IMAGE.to_owned(), "capi", "ubuntu-2204-gen1")
    };
    let published = MARKETPLACE
        .iter()
        .find(|(kubernetes, ..)| *kubernetes == version)
        .map(|(_, linux, on_windows)| if windows { *on_windows } else { *linux })
        .filter(|version| !version.is_empty());
    let marketplace = published.map(|version| MarketplaceImage {
        publisher: Some("cncf-upstream".into()),
        offer: Some(offer.into()),
        sku: Some(sku.into()),
        version: Some(version.into()),
        ..MarketplaceImage::default()
    });
    let compute_gallery = marketplace.is_none().then(|| ComputeGalleryImage {
        gallery: Some(GALLERY.into()),
        name: Some(name),
        version: Some(version),
        ..ComputeGalleryImage::default()
    });
    Ok(Image { marketplace, compute_gallery, ..Image::default() })
}

/// The name of the image of Windows that annotations select.
fn windows_image(annotations: &BTreeMap<String, String>) -> Result<String, ImageError> {
    let annotation = |name: &str| annotations.get(name).map(String::as_str).filter(|value| !value.is_empty());
    if let Some(runtime) = annotation(RUNTIME).filter(|runtime| *runtime != "containerd") {
        return Err(ImageError::Runtime(runtime.to_owned()));
    }
    let year = match annotation(WINDOWS_SERVER_VERSION) {
        None => WINDOWS_YEAR,
        Some(version) => version
            .strip_prefix("windows-")
            .filter(|year| year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit()))
            .ok_or_else(|| ImageError::WindowsServer(version.to_owned()))?,
    };
    let (before, after) = WINDOWS_IMAGE;
    Ok(format!("{before}{year}{after}"))
}

/// The image as a reference in documents of machines and scale sets.
///
/// # Errors
/// The image is empty.
pub fn reference(image: &Image) -> Result<Value, ImageError> {
    if let Some(id) = &image.id {
        return Ok(json!({ "id": id }));
    }
    if let Some(image) = &image.marketplace {
        return Ok(json!({
            "publisher": image.publisher,
            "offer": image.offer,
            "sku": image.sku,
            "version": image.version,
        }));
    }
    // An image version in a user's gallery.
    let own = |place: [&Option<String>; 5]| {
        let [subscription, group, gallery, name, version] = place.map(text);
        json!({ "id": format!(
            "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/galleries/{gallery}/images/{name}/versions/{version}"
        )})
    };
    if let Some(it) = &image.shared_gallery {
        return Ok(own([&it.subscription_id, &it.resource_group, &it.gallery, &it.name, &it.version]));
    }
    let it = image.compute_gallery.as_ref().ok_or(ImageError::Empty)?;
    if it.subscription_id.is_some() && it.resource_group.is_some() {
        return Ok(own([&it.subscription_id, &it.resource_group, &it.gallery, &it.name, &it.version]));
    }
    let [gallery, name, version] = [&it.gallery, &it.name, &it.version].map(text);
    Ok(json!({
        "communityGalleryImageId": format!("/CommunityGalleries/{gallery}/Images/{name}/Versions/{version}"),
    }))
}

fn text(member: &Option<String>) -> &str {
    member.as_deref().unwrap_or_default()
}

/// Whether two references are to the same image. Azure changes the case of IDs, and adds the version that `latest` was.
pub fn is_same(one: &Value, other: &Value) -> bool {
    const PLACES: [&str; 7] =
        ["id", "communityGalleryImageId", "sharedGalleryImageId", "publisher", "offer", "sku", "version"];
    PLACES.iter().all(|place| match (one[*place].as_str(), other[*place].as_str()) {
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
        (one, other) => one.unwrap_or_default() == other.unwrap_or_default(),
    })
}

/// The purchase plan of an image in the marketplace, if it needs one.
pub fn plan(image: &Image) -> Option<Value> {
    let plan = |publisher: &Option<String>, offer: &Option<String>, sku: &Option<String>| {
        Some(json!({ "publisher": publisher.as_ref()?, "product": offer.as_ref()?, "name": sku.as_ref()? }))
    };
    if let Some(image) = &image.shared_gallery
        && let Some(plan) = plan(&image.publisher, &image.offer, &image.sku)
    {
        return Some(plan);
    }
    if let Some(image) = image.marketplace.as_ref().filter(|image| image.third_party_image == Some(true)) {
        return plan(&image.publisher, &image.offer, &image.sku);
    }
    let ImagePlan { publisher, offer, sku, .. } = image.compute_gallery.as_ref()?.plan.as_ref()?;
    plan(publisher, offer, sku)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(os: &str, version: &str, annotations: &[(&str, &str)]) -> Result<Value, String> {
        let annotations = annotations.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let image = choose(None, Some(os), Some(version), &annotations).map_err(|error| error.to_string())?;
        reference(&image).map_err(|error| error.to_string())
    }

    fn community(name: &str, version: &str) -> Value {
        json!({ "communityGalleryImageId": format!(
            "/CommunityGalleries/ClusterAPI-f72ceb4f-5159-4c26-a0fe-2ea738f0d019/Images/{name}/Versions/{version}"
        )})
    }

    /// CAPZ-096, CAPZ-097.
    #[test]
    fn linux_has_an_image_for_each_version() {
        for (version, image) in [
            ("v1.31.1", community("capi-ubun2-2404", "1.31.1")),
            (" 1.31", community("capi-ubun2-2404", "1.31.0")),
            ("v1.31.1+1234", community("capi-ubun2-2404", "1.31.1+1234")),
            // Versions that the marketplace never had are in the gallery, whatever their age.
            ("1.28.13", community("capi-ubun2-2404", "1.28.13")),
            ("1.27.15", marketplace("capi", "ubuntu-2204-gen1", "127.15.20240612")),
            ("1.28.12", marketplace("capi", "ubuntu-2204-gen1", "128.12.20240717")),
            ("v1.30.3", marketplace("capi", "ubuntu-2204-gen1", "130.3.20240717")),
        ] {
            assert_eq!(chosen("Linux", version, &[]).unwrap(), image, "{version}");
        }
        let error = chosen("Linux", "1.31.1.2", &[]).unwrap_err();
        assert!(error.contains("unable to parse Kubernetes version \"1.31.1.2\""), "{error}");
    }

    fn marketplace(offer: &str, sku: &str, version: &str) -> Value {
        json!({ "publisher": "cncf-upstream", "offer": offer, "sku": sku, "version": version })
    }

    /// CAPZ-098.
    #[test]
    fn annotations_choose_among_images_of_windows() {
        for (version, annotations, image) in [
            ("1.31.1", vec![], community("capi-win-2022-containerd", "1.31.1")),
            (
                "1.31.1",
                vec![("windowsServerVersion", "windows-2019"), ("runtime", "containerd")],
                community("capi-win-2019-containerd", "1.31.1"),
            ),
            (
                "1.31.1",
                vec![("windowsServerVersion", ""), ("runtime", "")],
                community("capi-win-2022-containerd", "1.31.1"),
            ),
            ("1.27.15", vec![], community("capi-win-2022-containerd", "1.27.15")),
            ("1.29.1", vec![], marketplace("capi-windows", "windows-2019-containerd-gen1", "129.1.20240201")),
        ] {
            assert_eq!(chosen("Windows", version, &annotations).unwrap(), image, "{version} {annotations:?}");
        }
        for (annotation, words) in [
            (("runtime", "dockershim"), "unsupported runtime dockershim"),
            (("windowsServerVersion", "2019"), "unsupported osAndVersion 2019"),
            (("windowsServerVersion", "windows-20190"), "unsupported osAndVersion windows-20190"),
        ] {
            let error = chosen("Windows", "1.31.1", &[annotation]).unwrap_err();
            assert!(error.starts_with(words), "{error}");
        }
    }

    /// CAPZ-099.
    #[test]
    fn declared_images_are_referred_to_by_id_or_by_name() {
        let own = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/galleries/ga/images/n/versions/1.0.0";
        let gallery = json!({ "subscriptionID": "s", "resourceGroup": "g", "gallery": "ga", "name": "n", "version": "1.0.0" });
        for (declared, wanted) in [
            (json!({ "id": "/any/id" }), json!({ "id": "/any/id" })),
            (
                json!({ "computeGallery": { "gallery": "ga", "name": "n", "version": "1.0.0" } }),
                json!({ "communityGalleryImageId": "/CommunityGalleries/ga/Images/n/Versions/1.0.0" }),
            ),
            (json!({ "computeGallery": gallery }), json!({ "id": own })),
            (json!({ "sharedGallery": gallery }), json!({ "id": own })),
        ] {
            let image: Image = serde_json::from_value(declared.clone()).unwrap();
            let image = choose(Some(&image), None, None, &BTreeMap::new()).unwrap();
            assert_eq!(reference(&image).unwrap(), wanted, "{declared}");
            assert_eq!(plan(&image), None, "{declared}");
        }
        assert_eq!(reference(&Image::default()), Err(ImageError::Empty));
    }

    /// CAPZ-100.
    #[test]
    fn what_is_sold_has_a_plan() {
        let wanted = json!({ "publisher": "p", "product": "o", "name": "s" });
        let sold = json!({ "publisher": "p", "offer": "o", "sku": "s", "version": "1" });
        let with = |name: &str, value: Value| {
            let mut sold = sold.clone();
            sold[name] = value;
            sold
        };
        for (declared, plan_of) in [
            (json!({ "marketplace": with("thirdPartyImage", json!(true)) }), Some(&wanted)),
            (json!({ "marketplace": with("thirdPartyImage", json!(false)) }), None),
            (json!({ "marketplace": sold }), None),
            (json!({ "sharedGallery": with("gallery", json!("g")) }), Some(&wanted)),
            (json!({ "sharedGallery": { "publisher": "p", "offer": "o" } }), None),
            (
                json!({ "computeGallery": { "plan": { "publisher": "p", "offer": "o", "sku": "s" } } }),
                Some(&wanted),
            ),
        ] {
            let image: Image = serde_json::from_value(declared.clone()).unwrap();
            assert_eq!(plan(&image).as_ref(), plan_of, "{declared}");
        }
    }
}
