//! Images of nodes ("Upgrade Azure Kubernetes Service (AKS) node images").

/// The release that new pools get: the one that the recorded conversation has.
const USUAL: &str = "202502.09.0";
/// The release that an upgrade of images brings: our choice.
const NEWEST: &str = "202502.23.0";

/// An operating system of nodes, with what its images are called.
fn family(os_sku: &str) -> &'static str {
    match os_sku {
        "AzureLinux" | "CBLMariner" | "Mariner" => "AKSAzureLinux-V3gen2",
        "Ubuntu2204" | "Ubuntu" => "AKSUbuntu-2204gen2containerd",
        "Ubuntu2404" => "AKSUbuntu-2404gen2containerd",
        "Windows2019" => "AKSWindows-2019-containerd",
        _ => "AKSWindows-2022-containerd",
    }
}

/// The image of new pools.
pub(super) fn usual(os_sku: &str) -> String {
    format!("{}-{USUAL}", family(os_sku))
}

/// The newest image.
pub(super) fn newest(os_sku: &str) -> String {
    format!("{}-{NEWEST}", family(os_sku))
}

/// The version of the gallery's image that an image's name stands for: what a scale set's model names.
pub(super) fn gallery_id(image: &str) -> String {
    let (family, release) = image.rsplit_once('-').unwrap_or((image, USUAL));
    let (gallery, definition) = family.split_once('-').unwrap_or((family, family));
    // The subscription in which AKS publishes its images.
    format!(
        "/subscriptions/109a5e88-712a-48ae-9078-9ca8b3c81345/resourceGroups/AKS-{}/providers/Microsoft.Compute/galleries/\
         {gallery}/images/{definition}/versions/{release}",
        gallery.trim_start_matches("AKS")
    )
}
