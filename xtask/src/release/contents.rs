//! The contents of a release's folder, from what was built and what the checkout has.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::changelog::{notes, section};
use crate::images::layer::{File, Files, archive, compress};
use crate::images::layout::sha256;
use crate::provenance::Provenance;

/// An image.
#[derive(Debug)]
pub struct Image {
    /// Its name.
    pub name: String,
    /// The digest of its index.
    pub digest: String,
    /// The OCI archive.
    pub archive: Vec<u8>,
}

/// What a release is made of.
#[derive(Debug, Default)]
pub struct Ingredients {
    /// Programs by platform, such as `linux-amd64`.
    pub programs: BTreeMap<String, Files>,
    /// Files that stand beside the programs in each archive: licence, changelog.
    pub documents: Files,
    /// Images.
    pub images: Vec<Image>,
    /// Charts by the names of their folders.
    pub charts: BTreeMap<String, Files>,
    /// Folders that are taken as they are.
    pub folders: BTreeMap<&'static str, Files>,
    /// CHANGELOG.md.
    pub changelog: String,
}

/// The files of the release's folder.
///
/// # Errors
/// The changelog has no section for the release, or a chart is of another release.
pub fn contents(ingredients: Ingredients, provenance: &Provenance) -> anyhow::Result<Files> {
    let tag = provenance.tag();
    let seconds = provenance.date.as_second().unsigned_abs();
    let section = section(&ingredients.changelog, &provenance.version)?;
    let mut files = Files::new();
    for (platform, programs) in ingredients.programs {
        let name = format!("cerulean-{tag}-{platform}");
        let members = programs.into_iter().chain(ingredients.documents.clone());
        let package = compress(&archive(&below(&name, members), seconds)?)?;
        files.insert(format!("{name}.tar.gz"), File::plain(package));
    }
    for (folder, chart) in ingredients.charts {
        let name = package_name(&folder, &chart, &provenance.version)?;
        let package = compress(&archive(&below(&folder, chart), seconds)?)?;
        files.insert(format!("charts/{name}"), File::plain(package));
    }
    let digests: Vec<(String, String)> =
        ingredients.images.iter().map(|image| (image.name.clone(), image.digest.clone())).collect();
    files.extend(
        ingredients
            .images
            .into_iter()
            .map(|image| (format!("images/{}.tar", image.name), File::plain(image.archive))),
    );
    files.extend(ingredients.folders.into_iter().flat_map(|(folder, members)| below(folder, members)));
    let notes = notes(section, &tag, &provenance.commit, &digests);
    files.insert("RELEASE_NOTES.md".to_owned(), File::plain(notes));
    let sums: String =
        files.iter().map(|(path, file)| format!("{}  {path}\n", sha256(&file.bytes))).collect();
    files.insert("SHA256SUMS".to_owned(), File::plain(sums));
    Ok(files)
}

/// Files in a folder.
fn below(folder: &str, files: impl IntoIterator<Item = (String, File)>) -> Files {
    files.into_iter().map(|(path, file)| (format!("{folder}/{path}"), file)).collect()
}

/// The file name of a chart, as helm gives it.
fn package_name(folder: &str, chart: &Files, version: &str) -> anyhow::Result<String> {
    let place = format!("deploy/charts/{folder}/Chart.yaml");
    let file = chart.get("Chart.yaml").with_context(|| format!("{place} is missing"))?;
    let text = std::str::from_utf8(&file.bytes).with_context(|| format!("cannot read {place}"))?;
    let document: Value = serde_saphyr::from_str(text).with_context(|| format!("cannot read {place}"))?;
    let of = |key: &str| document[key].as_str().with_context(|| format!("{place} has no {key}"));
    let release = of("appVersion")?;
    ensure!(
        release.trim_start_matches('v') == version,
        "{place}: appVersion is {release}, the release {version}: change one of them"
    );
    Ok(format!("{}-{}.tgz", of("name")?, of("version")?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Read as _;

    use jiff::Timestamp;

    use super::*;

    fn provenance() -> Provenance {
        Provenance {
            version: "0.1.0".to_owned(),
            commit: "894fce43dc47".to_owned(),
            date: Timestamp::from_second(1_700_000_000).unwrap(),
            source: None,
        }
    }

    fn ingredients(release: &str) -> Ingredients {
        let file = |path: &str, text: &str| Files::from([(path.to_owned(), File::plain(text))]);
        let chart = format!("name: capz\nversion: 1.2.3\nappVersion: {release}\n");
        Ingredients {
            programs: [(
                "linux-amd64".to_owned(),
                Files::from([("manager".to_owned(), File::program("elf"))]),
            )]
            .into(),
            documents: file("LICENSE", "Apache"),
            images: vec![Image {
                name: "manager".to_owned(),
                digest: "sha256:12".to_owned(),
                archive: b"image".to_vec(),
            }],
            charts: [("capz".to_owned(), file("Chart.yaml", &chart))].into(),
            folders: [
                ("sbom", file("manager-amd64.cdx.json", "{}")),
                ("manifests", file("all.yaml", "kind: Deployment")),
                ("clusterctl", file("metadata.yaml", "kind: Metadata")),
            ]
            .into(),
            changelog: "## [0.1.0]\n\n- Images.\n".to_owned(),
        }
    }

    #[test]
    fn a_release_has_all_files_and_their_sums() {
        let files = contents(ingredients("v0.1.0"), &provenance()).unwrap();
        let paths: Vec<&str> = files.keys().map(String::as_str).collect();
        let expected = [
            "RELEASE_NOTES.md",
            "SHA256SUMS",
            "cerulean-v0.1.0-linux-amd64.tar.gz",
            "charts/capz-1.2.3.tgz",
            "clusterctl/metadata.yaml",
            "images/manager.tar",
            "manifests/all.yaml",
            "sbom/manager-amd64.cdx.json",
        ];
        assert_eq!(paths, expected);
        let sums = String::from_utf8(files["SHA256SUMS"].bytes.clone()).unwrap();
        assert_eq!(sums.lines().count(), expected.len() - 1, "{sums}");
        assert!(sums.contains(&format!("{}  images/manager.tar\n", sha256(b"image"))), "{sums}");
        assert_eq!(files, contents(ingredients("v0.1.0"), &provenance()).unwrap());
    }

    #[test]
    fn an_archive_of_programs_has_them_and_the_licence_in_one_folder() {
        let files = contents(ingredients("0.1.0"), &provenance()).unwrap();
        let mut archive = Vec::new();
        let package = &files["cerulean-v0.1.0-linux-amd64.tar.gz"].bytes;
        flate2::read::GzDecoder::new(&package[..]).read_to_end(&mut archive).unwrap();
        let mut archive = tar::Archive::new(&archive[..]);
        let paths: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        let folder = "cerulean-v0.1.0-linux-amd64/";
        assert_eq!(paths, ["", "LICENSE", "manager"].map(|name| format!("{folder}{name}")));
    }

    #[test]
    fn a_chart_of_another_release_is_refused() {
        let problem = contents(ingredients("0.2.0"), &provenance()).unwrap_err().to_string();
        let expected =
            "deploy/charts/capz/Chart.yaml: appVersion is 0.2.0, the release 0.1.0: change one of them";
        assert_eq!(problem, expected);
    }
}
