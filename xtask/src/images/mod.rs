//! Images of the programs, without a container engine: each program is built statically and put above certificate
//! authorities and two users, and where it works with file systems above Debian's tools for them, for each platform; equal
//! sources give equal bytes.

mod assemble;
mod base;
mod builder;
pub mod catalogue;
mod check;
pub mod layer;
pub mod layout;
pub mod platform;
mod sbom;
mod tools;

use std::path::PathBuf;

use anyhow::Context as _;
use assemble::{Assembled, Size};
pub use builder::Builder;
use catalogue::{Group, IMAGES, Image};
use platform::Platform;

use crate::print;
use crate::program::root;
use crate::provenance::{Provenance, uncommitted};

/// What to build.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Task>,
    #[command(flatten)]
    build: Build,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Read images with skopeo, unpack them with umoci, and run them as their user with a read-only root.
    Check(check::Arguments),
}

/// Which images, for what, and where they are written.
#[derive(Debug, Clone, clap::Args)]
pub struct Build {
    /// Folder for layouts and archives.
    #[arg(long, value_name = "FOLDER", default_value = "target/images")]
    pub out: PathBuf,
    /// Platforms: amd64, arm64, windows-amd64 (only of the node manager).
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "amd64", value_parser = Platform::parse)]
    pub arch: Vec<&'static Platform>,
    /// Only the images with these names.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = named)]
    pub only: Vec<&'static Image>,
    /// Cargo's profile: small is for production, image-trial builds in less time.
    #[arg(long, value_name = "NAME", default_value = "small")]
    pub profile: String,
    /// Registry before the names under which archives are imported by containerd and Docker.
    #[arg(long, value_name = "HOST", default_value = "localhost")]
    pub registry: String,
    /// Address of the published sources, for the label org.opencontainers.image.source.
    #[arg(long, value_name = "URL")]
    pub source: Option<String>,
}

fn named(name: &str) -> Result<&'static Image, String> {
    IMAGES.iter().find(|image| image.name == name).ok_or_else(|| {
        let names = IMAGES.each_ref().map(|image| image.name);
        format!("choose from {}", names.join(", "))
    })
}

/// Builds images, or checks them.
///
/// # Errors
/// A tool is missing, a build fails, a file cannot be written, or a check fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.command {
        Some(Task::Check(arguments)) => check::run(arguments),
        None => {
            let wanted = &arguments.build;
            let provenance = Provenance::of(&root(), wanted.source.clone())?;
            if !uncommitted(&root()).is_empty() {
                print::line("files are changed and not committed: the images name the last commit");
            }
            if provenance.source.is_none() {
                print::line(
                    "the label org.opencontainers.image.source is left out: give the address with --source",
                );
            }
            let builder = Builder::new(&wanted.arch, &wanted.profile, &provenance)?;
            build(wanted, &builder, &print::line)?;
            Ok(())
        }
    }
}

/// An image that was written.
#[derive(Debug)]
pub struct Written {
    /// The image.
    pub image: &'static Image,
    /// The digest of its index.
    pub digest: String,
    /// The archive.
    pub archive: PathBuf,
    /// Its bills of materials.
    pub bills: Vec<PathBuf>,
    /// Its programs, each with its platform.
    pub programs: Vec<(&'static Platform, PathBuf)>,
}

/// Builds the images and writes each as a folder, an archive, and bills of materials.
///
/// # Errors
/// A tool is missing, a build fails, or a file cannot be written.
pub fn build(wanted: &Build, builder: &Builder<'_>, say: &dyn Fn(String)) -> anyhow::Result<Vec<Written>> {
    std::fs::create_dir_all(&wanted.out).with_context(|| format!("cannot make {}", wanted.out.display()))?;
    let all: Vec<&Image> = IMAGES.iter().collect();
    let images = if wanted.only.is_empty() { &all } else { &wanted.only };
    for platform in &wanted.arch {
        for group in Group::ALL {
            let of_group = images.iter().filter(|it| it.group == group && it.platforms.contains(platform));
            let binaries: Vec<&str> = of_group.map(|image| image.binary).collect();
            if !binaries.is_empty() {
                say(format!("building for {}: {}", platform.name, binaries.join(", ")));
                builder.build(&group.packages(platform), &binaries, platform)?;
            }
        }
    }
    let mut written = Vec::new();
    for image in images {
        let platforms: Vec<_> =
            wanted.arch.iter().copied().filter(|platform| image.platforms.contains(platform)).collect();
        if platforms.is_empty() {
            say(format!("{}: it has none of these platforms", image.name));
            continue;
        }
        let (mut programs, mut bills, mut files) = (Vec::new(), Vec::new(), Vec::new());
        for platform in platforms {
            let (program, file) = builder.image_program(image, platform)?;
            let bill = wanted.out.join(format!("{}-{}.cdx.json", image.name, platform.name));
            std::fs::write(&bill, format!("{:#}\n", program.bill))
                .with_context(|| format!("cannot write {}", bill.display()))?;
            bills.push(bill);
            programs.push(program);
            files.push((platform, file));
        }
        let Assembled { digest, files: layout, sizes } =
            assemble::assemble(image, programs, builder.provenance, &wanted.registry)?;
        layout::write_folder(&layout, &wanted.out.join(image.name))?;
        let archive = wanted.out.join(format!("{}.tar", image.name));
        layout::write_archive(&layout, &archive)?;
        say(format!("{}: {digest}{}", archive.display(), in_words(&sizes)));
        written.push(Written { image, digest, archive, bills, programs: files });
    }
    Ok(written)
}

/// The sizes of an image, after its digest.
fn in_words(sizes: &[Size]) -> String {
    let megabytes = |bytes: usize| {
        let tenths = (bytes + 50_000) / 100_000;
        format!("{}.{} MB", tenths / 10, tenths % 10)
    };
    let size = |size: &Size| {
        format!(
            "; {} {} compressed, {} unpacked",
            size.platform,
            megabytes(size.compressed),
            megabytes(size.unpacked)
        )
    };
    sizes.iter().map(size).collect()
}
