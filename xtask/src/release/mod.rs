//! Everything that a release has, in one folder: archives of programs, images, charts, manifests, what clusterctl reads, dashboards
//! and alerts, roles, bills of materials, notes, and the sums of all of it.

mod changelog;
mod contents;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use contents::{Image, Ingredients};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::images::catalogue::{Group, IMAGES};
use crate::images::layer::{File, Files};
use crate::images::platform::Platform;
use crate::images::{Build, Builder, build};
use crate::print;
use crate::program::root;
use crate::provenance::{Provenance, uncommitted};

/// What to release, and where it is written.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folder for the release; what it had before is removed.
    #[arg(long, value_name = "FOLDER", default_value = "target/release-files")]
    out: PathBuf,
    /// Platforms: amd64, arm64, windows-amd64 (the node manager alone).
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "amd64,arm64", value_parser = Platform::parse)]
    arch: Vec<&'static Platform>,
    /// Cargo's profile.
    #[arg(long, value_name = "NAME", default_value = "small")]
    profile: String,
    /// Registry before the names under which images are imported.
    #[arg(long, value_name = "HOST", default_value = "localhost")]
    registry: String,
    /// Address of the published sources, for the images' labels.
    #[arg(long, value_name = "URL")]
    source: Option<String>,
    /// Release although files are changed that no commit has: for trials.
    #[arg(long)]
    allow_uncommitted: bool,
}

/// The tool for people, which no image has: its package and its binary.
const TOOL: &str = "cerulean";

/// Builds a release.
///
/// # Errors
/// Files are not committed, a build fails, the changelog says nothing of the release, or a file cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let root = root();
    let changed = uncommitted(&root);
    ensure!(
        changed.is_empty() || arguments.allow_uncommitted,
        "files are changed that no commit has: commit them, or give --allow-uncommitted for a trial:\n{changed}"
    );
    let provenance = Provenance::of(&root, arguments.source.clone())?;
    let changelog = std::fs::read_to_string(root.join("CHANGELOG.md")).context("cannot read CHANGELOG.md")?;
    // Before builds that take an hour.
    changelog::section(&changelog, &provenance.version)?;

    let linux: Vec<_> = arguments.arch.iter().copied().filter(|platform| platform.os == "linux").collect();
    let progress = Progress::new(
        arguments
            .arch
            .iter()
            .map(|platform| Group::ALL.iter().filter(|group| !group.packages(platform).is_empty()).count())
            .sum::<usize>()
            + IMAGES.len()
            + linux.len(),
    );
    let builder = Builder::new(&arguments.arch, &arguments.profile, &provenance)?;
    let images = Build {
        out: root.join("target/images"),
        arch: arguments.arch.clone(),
        only: Vec::new(),
        profile: arguments.profile.clone(),
        registry: arguments.registry.clone(),
        source: arguments.source.clone(),
    };
    let written = build(&images, &builder, &|text| progress.step(&text))?;
    let mut programs: BTreeMap<String, Files> = BTreeMap::new();
    let place = |platform: &Platform| format!("{}-{}", platform.os, platform.architecture);
    for platform in linux {
        progress.step(&format!("{TOOL}: building for {}", platform.name));
        builder.build(&[TOOL], &[TOOL], platform)?;
        let file = read(&builder.file(TOOL, platform))?;
        programs.entry(place(platform)).or_default().insert(TOOL.to_owned(), File::program(file));
    }
    let (mut packed, mut bills) = (Vec::new(), Files::new());
    for image in written {
        for (platform, file) in &image.programs {
            let name = format!("{}{}", image.image.binary, platform.suffix);
            programs.entry(place(platform)).or_default().insert(name, File::program(read(file)?));
        }
        for path in &image.bills {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            bills.insert(name, File::plain(read(path)?));
        }
        let (name, digest) = (image.image.name.to_owned(), image.digest);
        packed.push(Image { name, digest, archive: read(&image.archive)? });
    }
    let documents = ["LICENSE", "CHANGELOG.md"];
    let ingredients = Ingredients {
        programs,
        documents: documents
            .iter()
            .map(|name| Ok(((*name).to_owned(), File::plain(read(&root.join(name))?))))
            .collect::<anyhow::Result<_>>()?,
        images: packed,
        charts: charts(&root)?,
        folders: folders(&root, bills)?,
        changelog,
    };
    let files = contents::contents(ingredients, &provenance)?;
    write(&files, &arguments.out)?;
    progress.end();
    let bytes: usize = files.values().map(|file| file.bytes.len()).sum();
    print::line(format_args!(
        "{}: {} files, {} MB; SHA256SUMS has the sum of each",
        arguments.out.display(),
        files.len(),
        bytes / 1_000_000
    ));
    Ok(())
}

/// The charts of the checkout, by folder.
fn charts(root: &Path) -> anyhow::Result<BTreeMap<String, Files>> {
    let mut charts: BTreeMap<String, Files> = BTreeMap::new();
    for (path, file) in committed(root, "deploy/charts")? {
        if let Some((chart, rest)) = path.split_once('/') {
            charts.entry(chart.to_owned()).or_default().insert(rest.to_owned(), file);
        }
    }
    Ok(charts)
}

/// The folders that a release has beside programs, images and charts.
fn folders(root: &Path, bills: Files) -> anyhow::Result<BTreeMap<&'static str, Files>> {
    let mut monitoring = committed(root, "deploy/monitoring")?;
    // Dashboards are printed from these.
    monitoring.retain(|path, _| !path.starts_with("parts/"));
    Ok([
        ("sbom", bills),
        ("manifests", committed(root, "deploy/manifests")?),
        ("clusterctl", clusterctl(root)?),
        ("monitoring", monitoring),
        ("rights", committed(root, "deploy/rights")?),
    ]
    .into())
}

/// What clusterctl reads of a provider, in one folder, as it expects it.
fn clusterctl(root: &Path) -> anyhow::Result<Files> {
    let all = committed(root, "deploy/capz")?;
    let wanted = all.into_iter().filter_map(|(path, file)| {
        let name = path.strip_prefix("templates/").unwrap_or(&path);
        (!name.contains('/') && name.ends_with(".yaml")).then(|| (name.to_owned(), file))
    });
    Ok(wanted.collect())
}

/// The committed files below a folder, by their paths in it; none if the folder does not exist.
fn committed(root: &Path, folder: &str) -> anyhow::Result<Files> {
    let output = Command::new("git").arg("-C").arg(root).args(["ls-files", "-z", "--", folder]).output();
    let output = output.context("cannot start git")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    let list = String::from_utf8(output.stdout).context("git ls-files printed something that is no text")?;
    let paths = list.split('\0').filter(|path| !path.is_empty());
    paths
        .map(|path| {
            let name = path.strip_prefix(folder).unwrap_or(path).trim_start_matches('/');
            Ok((name.to_owned(), File::plain(read(&root.join(path))?)))
        })
        .collect()
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes the release in place of a former one. A folder that is no release is kept.
fn write(files: &Files, folder: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", folder.display());
    if folder.exists() {
        let empty = std::fs::read_dir(folder).with_context(cannot)?.next().is_none();
        ensure!(
            empty || folder.join("SHA256SUMS").exists(),
            "{} has other files than those of a release: give an empty folder with --out",
            folder.display()
        );
        std::fs::remove_dir_all(folder).with_context(cannot)?;
    }
    for (path, file) in files {
        let path = folder.join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(cannot)?;
        }
        std::fs::write(path, &file.bytes).with_context(cannot)?;
    }
    Ok(())
}

/// The steps of a release: a bar on a terminal, lines elsewhere.
struct Progress {
    bar: ProgressBar,
    terminal: bool,
}

impl Progress {
    fn new(steps: usize) -> Self {
        let bar = ProgressBar::new(u64::try_from(steps).unwrap_or(u64::MAX));
        let terminal = io::stderr().is_terminal();
        if !terminal {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        Self { bar, terminal }
    }

    fn step(&self, text: &str) {
        self.bar.inc(1);
        self.bar.set_message(text.to_owned());
        if !self.terminal {
            print::line(text);
        }
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn clusterctl_gets_components_metadata_and_templates_and_no_parts() {
        let files = clusterctl(&root()).unwrap();
        for name in ["infrastructure-components.yaml", "metadata.yaml", "cluster-template.yaml"] {
            assert!(files.contains_key(name), "{name}: {:?}", files.keys());
        }
        assert!(
            !files.keys().any(|name| name.contains('/') || name.starts_with("50-")),
            "{:?}",
            files.keys()
        );
    }

    #[test]
    fn a_folder_with_other_files_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::from([("SHA256SUMS".to_owned(), File::plain(""))]);
        let (photos, release) = (folder.path().join("photos"), folder.path().join("release"));
        std::fs::create_dir(&photos).unwrap();
        std::fs::write(photos.join("sea.jpg"), "blue").unwrap();
        let problem = write(&files, &photos).unwrap_err().to_string();
        assert!(problem.contains("give an empty folder with --out"), "{problem}");
        assert!(photos.join("sea.jpg").exists());
        write(&files, &release).unwrap();
        write(&files, &release).unwrap();
        assert!(release.join("SHA256SUMS").exists());
    }

    /// What this checkout would be released with, apart from builds.
    #[test]
    fn the_checkout_has_a_changelog_and_charts_of_this_release() {
        let provenance = Provenance::of(&root(), None).unwrap();
        let changelog = std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
        let charts = charts(&root()).unwrap();
        let count = charts.len();
        let folders = folders(&root(), Files::new()).unwrap();
        let ingredients = Ingredients { changelog, charts, folders, ..Ingredients::default() };
        let files = contents::contents(ingredients, &provenance).unwrap();
        for folder in ["manifests/", "clusterctl/", "monitoring/dashboards/", "rights/azure/"] {
            assert!(files.keys().any(|path| path.starts_with(folder)), "{folder}: {:?}", files.keys());
        }
        assert_eq!(files.keys().filter(|path| path.starts_with("charts/")).count(), count);
    }
}
