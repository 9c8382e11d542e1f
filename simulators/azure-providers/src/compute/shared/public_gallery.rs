//! Galleries of other owners: public ones, by their public name (`communityGalleries`), and those that a subscription
//! shares (`sharedGalleries`); read by location, and referenced by machines ("Share images using a community gallery",
//! "Share a gallery with subscriptions or tenants").

use azure_engine::document::{at, items, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Handled};
use serde_json::{Value, json};

use crate::compute::tables::cluster_api_images;

const GALLERIES: &str = "Microsoft.Compute/galleries";

/// The ways of sharing a gallery.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// With the public.
    Community,
    /// With the subscriptions and tenants that its owner names.
    Shared,
}

impl Sharing {
    const ALL: [Self; 2] = [Self::Community, Self::Shared];

    /// The first segment of its images' ids, and the path that reads them, ignoring case.
    fn word(self) -> &'static str {
        if self == Self::Community { "communityGalleries" } else { "sharedGalleries" }
    }

    fn prefix(self) -> &'static str {
        if self == Self::Community { "CommunityGalleries" } else { "SharedGalleries" }
    }

    /// The value in a gallery's `sharingProfile`.
    fn permission(self) -> &'static str {
        if self == Self::Community { "Community" } else { "Groups" }
    }
}

/// A gallery as others see it.
struct Gallery {
    name: String,
    properties: Value,
    images: Vec<Image>,
}

struct Image {
    name: String,
    properties: Value,
    versions: Vec<Version>,
}

struct Version {
    name: String,
    properties: Value,
    /// Where it is; `None` for everywhere.
    regions: Option<Vec<String>>,
}

/// All galleries that are shared in this way.
fn galleries(azure: &AzureState, sharing: Sharing) -> Vec<Gallery> {
    let shared = |record: &&Record| {
        text(&record.body, "properties/sharingProfile/permissions") == Some(sharing.permission())
    };
    let stored = azure.store.of_type(GALLERIES).filter(shared).map(|record| stored(azure, sharing, record));
    let fixed = (sharing == Sharing::Community).then(cluster_api);
    fixed.into_iter().chain(stored).collect()
}

/// The gallery of Cluster API's images for Azure.
fn cluster_api() -> Gallery {
    let image = |definition: &cluster_api_images::Definition| {
        let version = |name: String| Version {
            name,
            properties: json!({ "excludeFromLatest": false, "storageProfile": {
                "osDiskImage": { "diskSizeGB": definition.gigabytes, "hostCaching": "None" },
            } }),
            regions: None,
        };
        Image {
            name: definition.name.to_owned(),
            properties: json!({
                "osType": definition.system,
                "osState": "Generalized",
                "hyperVGeneration": definition.generation,
                "architecture": "x64",
                "identifier": {
                    "publisher": cluster_api_images::PUBLISHER,
                    "offer": cluster_api_images::OFFER,
                    "sku": definition.name,
                },
            }),
            versions: cluster_api_images::versions().map(version).collect(),
        }
    };
    Gallery {
        name: cluster_api_images::GALLERY.to_owned(),
        properties: json!({ "communityMetadata": { "publicNames": [cluster_api_images::GALLERY] } }),
        images: cluster_api_images::DEFINITIONS.iter().map(image).collect(),
    }
}

/// A stored gallery that its subscription shares.
fn stored(azure: &AzureState, sharing: Sharing, gallery: &Record) -> Gallery {
    let name = match sharing {
        Sharing::Shared => {
            format!("{}-{}", gallery.id.subscription_id(), gallery.id.name().to_ascii_uppercase())
        }
        Sharing::Community => {
            let info = "properties/sharingProfile/communityGalleryInfo/publicNamePrefix";
            let prefix = text(&gallery.body, info).unwrap_or_else(|| gallery.id.name());
            format!(
                "{prefix}-{}",
                azure.seed.guid("public gallery", gallery.id.as_str(), gallery.incarnation)
            )
        }
    };
    let images = azure.store.of_type_below("Microsoft.Compute/galleries/images", &gallery.id);
    Gallery {
        properties: match sharing {
            Sharing::Community => json!({ "communityMetadata": { "publicNames": [name] } }),
            Sharing::Shared => json!({}),
        },
        name,
        images: images.into_iter().map(|image| stored_image(azure, image)).collect(),
    }
}

fn stored_image(azure: &AzureState, image: &Record) -> Image {
    let versions = azure.store.of_type_below("Microsoft.Compute/galleries/images/versions", &image.id);
    let version = |version: &&Record| {
        let profile = at(&version.body, "properties/publishingProfile");
        let regions = profile.map_or(&[][..], |profile| items(profile, "targetRegions")).iter();
        let mut regions: Vec<String> = regions
            .filter_map(|region| text(region, "name"))
            .map(azure_engine::document::location::normal_location)
            .collect();
        regions.push(azure.location(&version.id));
        Version {
            name: version.id.name().to_owned(),
            properties: json!({
                "publishedDate": version.created.to_string(),
                "excludeFromLatest": profile.and_then(|profile| profile.get("excludeFromLatest")).unwrap_or(&Value::Bool(false)),
                "storageProfile": at(&version.body, "properties/storageProfile"),
            }),
            regions: Some(regions),
        }
    };
    let mut properties = image.body.get("properties").cloned().unwrap_or_default();
    if let Value::Object(properties) = &mut properties {
        properties.remove("provisioningState");
    }
    Image { name: image.id.name().to_owned(), properties, versions: versions.iter().map(version).collect() }
}

impl Version {
    fn is_in(&self, location: &str) -> bool {
        self.regions.as_ref().is_none_or(|regions| regions.iter().any(|region| region == location))
    }
}

/// Galleries, images and versions by name.
trait Named {
    fn name(&self) -> &str;
}

impl Named for Gallery {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Image {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Version {
    fn name(&self) -> &str {
        &self.name
    }
}

fn find<'a, T: Named>(all: &'a [T], name: &str) -> Option<&'a T> {
    all.iter().find(|one| one.name().eq_ignore_ascii_case(name))
}

/// `locations/{location}/communityGalleries…` and `sharedGalleries…`, from that segment on.
pub(crate) fn answer(azure: &AzureState, location: &str, segments: &[&str]) -> Handled<Value> {
    let (kind, rest) = segments.split_first()?;
    let sharing = Sharing::ALL.into_iter().find(|sharing| kind.eq_ignore_ascii_case(sharing.word()))?;
    let all = galleries(azure, sharing);
    let whole_type = |below: &str| format!("Microsoft.Compute/locations/{}{below}", sharing.word());
    let show = |unique: String, kind: String, name: &str, properties: &Value| {
        json!({
            "identifier": { "uniqueId": unique },
            "location": location,
            "name": name,
            "type": kind,
            "properties": properties,
        })
    };
    let id = |gallery: &Gallery| format!("/{}/{}", sharing.prefix(), gallery.name);
    let gallery_shown =
        |gallery: &Gallery| show(id(gallery), whole_type(""), &gallery.name, &gallery.properties);
    let image_id = |gallery: &Gallery, image: &Image| format!("{}/Images/{}", id(gallery), image.name);
    let image_shown = |gallery: &Gallery, image: &Image| {
        show(image_id(gallery, image), whole_type("/images"), &image.name, &image.properties)
    };
    let version_shown = |gallery: &Gallery, image: &Image, version: &Version| {
        let unique = format!("{}/Versions/{}", image_id(gallery, image), version.name);
        show(unique, whole_type("/images/versions"), &version.name, &version.properties)
    };
    let absent = || {
        Code::ours(404, "NotFound").says(format_args!("{} was not found in {location}.", segments.join("/")))
    };
    let list = |shown: Vec<Value>| Ok(json!({ "value": shown }));
    let is = |segment: &str, word: &str| segment.eq_ignore_ascii_case(word);
    let gallery = match rest {
        [] => return Some(list(all.iter().map(gallery_shown).collect())),
        [name, ..] => match find(&all, name) {
            Some(gallery) => gallery,
            None => return Some(Err(absent())),
        },
    };
    let image = match rest {
        [_] => return Some(Ok(gallery_shown(gallery))),
        [_, images] if is(images, "images") => {
            return Some(list(gallery.images.iter().map(|image| image_shown(gallery, image)).collect()));
        }
        [_, images, name, ..] if is(images, "images") => match find(&gallery.images, name) {
            Some(image) => image,
            None => return Some(Err(absent())),
        },
        _ => return None,
    };
    match rest {
        [_, _, _] => Some(Ok(image_shown(gallery, image))),
        [_, _, _, versions] if is(versions, "versions") => {
            let here = image.versions.iter().filter(|version| version.is_in(location));
            Some(list(here.map(|version| version_shown(gallery, image, version)).collect()))
        }
        [_, _, _, versions, name] if is(versions, "versions") => {
            let found = find(&image.versions, name).filter(|version| version.is_in(location));
            let shown = found.map(|version| version_shown(gallery, image, version));
            Some(shown.ok_or_else(absent))
        }
        _ => None,
    }
}

/// Whether a machine can be created from an image with such an id:
/// `/CommunityGalleries/{gallery}/Images/{image}/Versions/{version}`, where `latest` is any version. Unknown galleries
/// are accepted.
pub(crate) fn has(azure: &AzureState, id: &str, location: &str) -> bool {
    let segments: Vec<&str> = id.trim_start_matches('/').split('/').collect();
    let [kind, gallery, images, image, versions, version] = segments.as_slice() else { return false };
    let is = |segment: &str, word: &str| segment.eq_ignore_ascii_case(word);
    let sharing = Sharing::ALL.into_iter().find(|sharing| is(kind, sharing.prefix()));
    let (Some(sharing), true, true) = (sharing, is(images, "Images"), is(versions, "Versions")) else {
        return false;
    };
    let all = galleries(azure, sharing);
    let Some(gallery) = find(&all, gallery) else { return true };
    let wanted = |one: &&Version| is(version, "latest") || is(&one.name, version);
    let found = find(&gallery.images, image);
    found.is_some_and(|image| image.versions.iter().filter(wanted).any(|version| version.is_in(location)))
}
