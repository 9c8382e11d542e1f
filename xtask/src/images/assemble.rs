//! From built programs to an image: layers, configuration, manifest for each platform, the bill of materials beside it, and
//! the index over all of them.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::base;
use super::catalogue::Image;
use super::layer::{self, File, Files};
use super::layout::{Descriptor, Entry, INDEX, Index, Layout, Place};
use super::platform::Platform;
use super::sbom;
use crate::provenance::Provenance;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A built program.
#[derive(Debug)]
pub struct Program {
    /// Its platform.
    pub platform: &'static Platform,
    /// The file.
    pub bytes: Vec<u8>,
    /// The programs of others beside it.
    pub tools: Files,
    /// Its bill of materials.
    pub bill: Value,
}

/// An image for one platform, as a table of sizes shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Size {
    /// The platform's name.
    pub platform: &'static str,
    /// Bytes in a registry.
    pub compressed: usize,
    /// Bytes on a node.
    pub unpacked: usize,
}

/// An image that is ready to be written.
#[derive(Debug)]
pub struct Assembled {
    /// The digest of its index: what a registry shows for its tag.
    pub digest: String,
    /// The files of its layout.
    pub files: Files,
    /// Its sizes.
    pub sizes: Vec<Size>,
}

/// Makes an image of programs for different platforms. `registry` is put before its name for tools that import archives.
///
/// # Errors
/// A layer cannot be made.
pub fn assemble(
    image: &Image,
    programs: Vec<Program>,
    provenance: &Provenance,
    registry: &str,
) -> anyhow::Result<Assembled> {
    let mut layout = Layout::default();
    let (mut manifests, mut bills, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for Program { platform, bytes, tools, bill } in programs {
        let layers = layers(image, platform, bytes, tools)?;
        let mut size = Size { platform: platform.name, compressed: 0, unpacked: 0 };
        let (mut described, mut sums) = (Vec::new(), Vec::new());
        for (files, seconds) in layers {
            let archive =
                layer::archive(&files, seconds.unwrap_or(provenance.date.as_second().unsigned_abs()))?;
            sums.push(format!("sha256:{}", super::layout::sha256(&archive)));
            let descriptor = layout.add(LAYER, layer::compress(&archive)?);
            size.compressed += descriptor.size;
            size.unpacked += files.values().map(|file| file.bytes.len()).sum::<usize>();
            described.push(descriptor);
        }
        sizes.push(size);
        let labels = labels(image, provenance);
        let config = layout.add_json(CONFIG, &configuration(image, platform, provenance, &labels, &sums))?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": described,
            "annotations": labels,
        });
        let manifest = layout.add_json(MANIFEST, &manifest)?;
        // What is no image has no platform; tools that look for one pass it by.
        let nowhere = Place { architecture: "unknown", os: "unknown" };
        bills.push(Entry { manifest: attach(&mut layout, &manifest, &bill, provenance)?, platform: nowhere });
        let Platform { architecture, os, .. } = *platform;
        manifests.push(Entry { manifest, platform: Place { architecture, os } });
    }
    manifests.extend(bills);
    let index = layout.add_json(INDEX, &Index::new(manifests, labels(image, provenance)))?;
    let tag = provenance.tag();
    let names = json!({
        "io.containerd.image.name": format!("{registry}/{}:{tag}", image.name),
        "org.opencontainers.image.ref.name": tag,
    });
    let digest = index.digest.clone();
    Ok(Assembled { digest, files: layout.files(&index, names), sizes })
}

/// The layers, from below, each with the date of its files if that is not the release's.
fn layers(
    image: &Image,
    platform: &Platform,
    program: Vec<u8>,
    tools: Files,
) -> anyhow::Result<Vec<(Files, Option<u64>)>> {
    if platform.os == "windows" {
        let name = image.path.rsplit('/').next().context("the program's path has no name")?;
        let path = format!("Files/{name}{}", platform.suffix);
        return Ok(vec![(Files::from([(path, File::program(program))]), None)]);
    }
    let path = image.path.trim_start_matches('/').to_owned();
    let mut layers = vec![(base::files(), Some(0))];
    if !tools.is_empty() {
        layers.push((tools, Some(0)));
    }
    layers.push((Files::from([(path, File::program(program))]), None));
    Ok(layers)
}

/// What `docker inspect` and registries show.
fn labels(image: &Image, provenance: &Provenance) -> Value {
    let mut labels = json!({
        "org.opencontainers.image.created": provenance.date.to_string(),
        "org.opencontainers.image.description": image.description,
        "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
        "org.opencontainers.image.revision": provenance.commit,
        "org.opencontainers.image.title": image.name,
        "org.opencontainers.image.version": provenance.tag(),
    });
    if let Some(source) = &provenance.source {
        labels["org.opencontainers.image.source"] = json!(source);
    }
    labels
}

fn configuration(
    image: &Image,
    platform: &Platform,
    provenance: &Provenance,
    labels: &Value,
    sums: &[String],
) -> Value {
    let created = provenance.date.to_string();
    let history: Vec<Value> =
        sums.iter().map(|_| json!({"created": created, "created_by": "cargo xtask images"})).collect();
    let mut configuration = json!({
        "created": created,
        "architecture": platform.architecture,
        "os": platform.os,
        "config": {
            "User": image.user,
            "Env": [PATH],
            "Entrypoint": [image.path],
            "WorkingDir": "/",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": sums},
        "history": history,
    });
    if platform.os == "windows" {
        let name = image.path.rsplit('/').next().unwrap_or_default();
        configuration["config"] =
            json!({"Entrypoint": [format!("{name}{}", platform.suffix)], "Labels": labels});
    }
    configuration
}

/// Adds a bill of materials that refers to the manifest: registries list it among the manifest's referrers.
fn attach(
    layout: &mut Layout,
    manifest: &Descriptor,
    bill: &Value,
    provenance: &Provenance,
) -> serde_json::Result<Descriptor> {
    let bill = layout.add_json(sbom::MEDIA_TYPE, bill)?;
    let nothing = layout.add(EMPTY, b"{}".to_vec());
    let document = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": sbom::MEDIA_TYPE,
        "config": nothing,
        "layers": [bill.with(json!({"annotations": {"org.opencontainers.image.title": "sbom.cdx.json"}}))],
        "subject": manifest,
        "annotations": {"org.opencontainers.image.created": provenance.date.to_string()},
    });
    layout.add_json(MANIFEST, &document)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use jiff::Timestamp;

    use super::super::catalogue::IMAGES;
    use super::super::layout::{self, sha256};
    use super::super::platform::{AMD64, ARM64, WINDOWS};
    use super::*;

    fn provenance() -> Provenance {
        Provenance {
            version: "0.1.0".to_owned(),
            commit: "894fce43dc47894fce43dc47894fce43dc47894f".to_owned(),
            date: Timestamp::from_second(1_700_000_000).unwrap(),
            source: Some("https://sources.example/cerulean".to_owned()),
        }
    }

    fn tools() -> Files {
        Files::from([
            ("sbin".to_owned(), File::link("usr/sbin")),
            ("usr/sbin/fsck".to_owned(), File::program("fsck")),
        ])
    }

    fn assembled(image: &Image) -> Assembled {
        let program = |platform: &'static Platform| Program {
            platform,
            bytes: format!("a program for {}", platform.name).into_bytes(),
            tools: if image.tools.is_some() { tools() } else { Files::new() },
            bill: json!({"bomFormat": "CycloneDX", "name": platform.name}),
        };
        let programs = image.platforms.iter().copied().map(program).collect();
        assemble(image, programs, &provenance(), "localhost").unwrap()
    }

    fn document(files: &Files, digest: &Value) -> Value {
        let sum = digest.as_str().unwrap().strip_prefix("sha256:").unwrap();
        serde_json::from_slice(&files[&format!("blobs/sha256/{sum}")].bytes).unwrap()
    }

    /// All descriptors in a document.
    fn descriptors(value: &Value, found: &mut Vec<(String, u64)>) {
        if let (Some(digest), Some(size)) = (value["digest"].as_str(), value["size"].as_u64()) {
            found.push((digest.to_owned(), size));
        }
        let members: Vec<&Value> = match value {
            Value::Object(members) => members.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => Vec::new(),
        };
        members.into_iter().for_each(|member| descriptors(member, found));
    }

    #[test]
    fn equal_sources_give_equal_bytes_in_any_folder() {
        let image = &IMAGES[0];
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let written = folders.each_ref().map(|folder| {
            let made = assembled(image);
            layout::write_folder(&made.files, &folder.path().join("layout")).unwrap();
            layout::write_archive(&made.files, &folder.path().join("archive.tar")).unwrap();
            let index = std::fs::read(folder.path().join("layout/index.json")).unwrap();
            let archive = sha256(&std::fs::read(folder.path().join("archive.tar")).unwrap());
            (made.digest, index, archive)
        });
        assert_eq!(written[0], written[1]);
        // A digest that changes with the selection of crates that are built, or with a version of the compressor, is noticed here.
        insta::assert_snapshot!(
            written[0].0,
            @"sha256:6e376eb559b880902462fb812bd673a477fa976d85f2a3d230067e10adefe690"
        );
    }

    #[test]
    fn each_descriptor_has_its_blob() {
        for image in &IMAGES {
            let made = assembled(image);
            let mut wanted = Vec::new();
            for (path, file) in &made.files {
                if let Ok(value) = serde_json::from_slice::<Value>(&file.bytes) {
                    descriptors(&value, &mut wanted);
                }
                if let Some(sum) = path.strip_prefix("blobs/sha256/") {
                    assert_eq!(sum, sha256(&file.bytes));
                }
            }
            assert!(wanted.len() > 10, "{wanted:?}");
            for (digest, size) in wanted {
                let path = digest.replace("sha256:", "blobs/sha256/");
                assert_eq!(u64::try_from(made.files[&path].bytes.len()).unwrap(), size, "{path}");
            }
        }
    }

    #[test]
    fn an_index_has_a_manifest_for_each_platform_and_a_bill_for_each_manifest() {
        let made = assembled(&IMAGES[1]);
        let top: Value = serde_json::from_slice(&made.files["index.json"].bytes).unwrap();
        assert_eq!(top["manifests"][0]["digest"], made.digest);
        let names = &top["manifests"][0]["annotations"];
        assert_eq!(names["io.containerd.image.name"], "localhost/azure-cloud-node-manager:v0.1.0");
        let index = document(&made.files, &top["manifests"][0]["digest"]);
        let manifests = index["manifests"].as_array().unwrap();
        let (images, bills) = manifests.split_at(3);
        for ((image, bill), platform) in images.iter().zip(bills).zip([&AMD64, &ARM64, &WINDOWS]) {
            assert_eq!(image["platform"]["architecture"], platform.architecture);
            assert_eq!(image["platform"]["os"], platform.os);
            let bill = document(&made.files, &bill["digest"]);
            assert_eq!(bill["artifactType"], sbom::MEDIA_TYPE);
            assert_eq!(bill["subject"]["digest"], image["digest"]);
            let bill = document(&made.files, &bill["layers"][0]["digest"]);
            assert_eq!(bill["name"], platform.name);
        }
    }

    /// As skopeo writes an index when it copies it.
    #[test]
    fn members_of_an_index_have_the_order_that_copying_keeps() {
        let made = assembled(&IMAGES[1]);
        let sum = made.digest.replace("sha256:", "blobs/sha256/");
        let text = String::from_utf8(made.files[&sum].bytes.clone()).unwrap();
        let places: Vec<_> =
            ["schemaVersion", "mediaType", "manifests", "mediaType", "digest", "size", "platform"]
                .iter()
                .scan(0, |from, member| {
                    *from += text.get(*from..)?.find(&format!("\"{member}\":"))? + 1;
                    Some(*from)
                })
                .collect();
        assert_eq!(places.len(), 7, "{text}");
        assert!(text.contains(r#""platform":{"architecture":"amd64","os":"windows"}}"#), "{text}");
        assert!(text.find("annotations").unwrap() > text.rfind("platform").unwrap(), "{text}");
        assert!(!text.contains("artifactType"), "{text}");
    }

    #[test]
    fn images_of_drivers_have_a_layer_of_tools_and_run_as_root() {
        let mut entrypoints = Vec::new();
        for image in IMAGES.iter().filter(|image| image.tools.is_some()) {
            let made = assembled(image);
            let top: Value = serde_json::from_slice(&made.files["index.json"].bytes).unwrap();
            let index = document(&made.files, &top["manifests"][0]["digest"]);
            let manifest = document(&made.files, &index["manifests"][0]["digest"]);
            assert_eq!(manifest["layers"].as_array().unwrap().len(), 3);
            let config = document(&made.files, &manifest["config"]["digest"]);
            assert_eq!(config["config"]["User"], "0:0");
            entrypoints.push(config["config"]["Entrypoint"][0].clone());
        }
        assert_eq!(entrypoints, ["/azurediskplugin", "/azurefileplugin"]);
    }

    #[test]
    fn an_image_runs_without_root_and_has_the_established_path() {
        let made = assembled(&IMAGES[0]);
        let top: Value = serde_json::from_slice(&made.files["index.json"].bytes).unwrap();
        let index = document(&made.files, &top["manifests"][0]["digest"]);
        let manifest = document(&made.files, &index["manifests"][0]["digest"]);
        let config = document(&made.files, &manifest["config"]["digest"]);
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Entrypoint"], json!(["/usr/local/bin/cloud-controller-manager"]));
        let labels = &config["config"]["Labels"];
        assert_eq!(labels["org.opencontainers.image.source"], "https://sources.example/cerulean");
        assert_eq!(labels["org.opencontainers.image.revision"], provenance().commit);
        assert_eq!(labels["org.opencontainers.image.created"], "2023-11-14T22:13:20Z");
        // The lowest layer is the same in all images.
        let lowest = |image: &Image| {
            let made = assembled(image);
            let top: Value = serde_json::from_slice(&made.files["index.json"].bytes).unwrap();
            let index = document(&made.files, &top["manifests"][0]["digest"]);
            document(&made.files, &index["manifests"][0]["digest"])["layers"][0].clone()
        };
        assert!(IMAGES.iter().all(|image| lowest(image) == manifest["layers"][0]));
    }

    /// Images of the listed packages with a script in the program's place, for `cargo xtask images check FOLDER`. Equal lists give
    /// equal bytes. The folder is that of the variable `CERULEAN_IMAGES`.
    #[test]
    #[ignore = "downloads packages of Debian"]
    fn the_listed_packages_make_images() {
        for image in &IMAGES {
            let Some(tools) = image.tools else { continue };
            let program = |platform: &'static Platform| Program {
                platform,
                bytes: b"#!/bin/sh\necho v0.1.0 894fce43dc47\n".to_vec(),
                tools: tools.files(&tools.packages(platform).unwrap()).unwrap(),
                bill: json!({}),
            };
            let made = || {
                let programs = image.platforms.iter().copied().map(program).collect();
                assemble(image, programs, &provenance(), "localhost").unwrap()
            };
            let first = made();
            assert_eq!(first.digest, made().digest);
            let folder = std::env::var_os("CERULEAN_IMAGES").map(std::path::PathBuf::from);
            let Some(folder) = folder else { continue };
            layout::write_folder(&first.files, &folder.join(image.name)).unwrap();
            layout::write_archive(&first.files, &folder.join(format!("{}.tar", image.name))).unwrap();
        }
    }
}
