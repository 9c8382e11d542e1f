//! Images of Kubernetes nodes, as Cluster API's provider for Azure publishes them (its `docs/book`, "Custom images",
//! and `azure/defaults.go`): one version for each release of Kubernetes.

/// The gallery's public name.
pub(crate) const GALLERY: &str = "ClusterAPI-f72ceb4f-5159-4c26-a0fe-2ea738f0d019";
/// Their publisher; our choice.
pub(crate) const PUBLISHER: &str = "ClusterAPI";
pub(crate) const OFFER: &str = "capi";

/// One kind of image.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) system: &'static str,
    pub(crate) generation: &'static str,
    pub(crate) gigabytes: u64,
}

pub(crate) static DEFINITIONS: [Definition; 5] = [
    Definition { name: "capi-ubun2-2404", system: "Linux", generation: "V2", gigabytes: 30 },
    Definition { name: "capi-azurelinux-3", system: "Linux", generation: "V2", gigabytes: 30 },
    Definition { name: "capi-win-2019-containerd", system: "Windows", generation: "V1", gigabytes: 128 },
    Definition { name: "capi-win-2022-containerd", system: "Windows", generation: "V1", gigabytes: 128 },
    Definition { name: "capi-win-2025-containerd", system: "Windows", generation: "V1", gigabytes: 128 },
];

/// Releases of Kubernetes by minor version: the first patch in the gallery (older ones are in the marketplace), and the
/// last. For supported minor versions the last assumes one patch a month until autumn 2026.
const RELEASES: [(u8, u8, u8); 10] = [
    (28, 13, 15),
    (29, 8, 15),
    (30, 4, 14),
    (31, 0, 14),
    (32, 0, 13),
    (33, 0, 14),
    (34, 0, 15),
    (35, 0, 11),
    (36, 0, 7),
    (37, 0, 3),
];

/// The versions of each image.
pub(crate) fn versions() -> impl Iterator<Item = String> {
    RELEASES
        .into_iter()
        .flat_map(|(minor, first, last)| (first..=last).map(move |patch| format!("1.{minor}.{patch}")))
}
