//! Builds of programs for platforms, and their bills of materials.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};

use super::assemble::Program;
use super::catalogue::Image;
use super::layer::Files;
use super::platform::{self, Folders, Platform};
use super::{layout, sbom};
use crate::program::{output, own_cargo, root};
use crate::provenance::Provenance;

/// Builds programs.
pub struct Builder<'a> {
    profile: &'a str,
    /// Their sources.
    pub provenance: &'a Provenance,
    folders: Folders,
    compiler: String,
    checksums: BTreeMap<sbom::Crate, String>,
}

impl<'a> Builder<'a> {
    /// A builder with a profile of cargo, if the machine has the tools for the platforms.
    ///
    /// # Errors
    /// A tool is missing; the text names the script that installs it.
    pub fn new(
        platforms: &[&'static Platform],
        profile: &'a str,
        provenance: &'a Provenance,
    ) -> anyhow::Result<Self> {
        let installed =
            output(Command::new("rustup").args(["target", "list", "--installed"]).current_dir(root()))
                .context("rustup is needed for targets: install it from https://rustup.rs")?;
        let installed: Vec<String> = installed.lines().map(str::to_owned).collect();
        let path = std::env::var("PATH").unwrap_or_default();
        for platform in platforms {
            platform.ready(&installed, &path).map_err(anyhow::Error::msg)?;
        }
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let home = variable("HOME").unwrap_or_default();
        let folders = Folders {
            root: root(),
            cargo: variable("CARGO_HOME").unwrap_or_else(|| home.join(".cargo")),
            target: variable("CARGO_TARGET_DIR").unwrap_or_else(|| root().join("target")),
        };
        let lock = std::fs::read_to_string(root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
        let compiler = output(Command::new("rustc").arg("--version").current_dir(root()))?;
        let checksums = sbom::checksums(&lock);
        Ok(Self { profile, provenance, folders, compiler: compiler.trim().to_owned(), checksums })
    }

    /// Builds binaries for a platform, with the features of all `packages`.
    ///
    /// # Errors
    /// They do not build.
    pub fn build(&self, packages: &[&str], binaries: &[&str], platform: &Platform) -> anyhow::Result<()> {
        let arguments = platform::arguments(platform, packages, binaries, self.profile, &self.folders);
        let status = self.cargo().args(arguments).arg("--quiet").status().context("cannot start cargo")?;
        if !status.success() {
            bail!("cargo does not build {} for {}", binaries.join(", "), platform.target);
        }
        Ok(())
    }

    /// The file of a binary that was built.
    pub fn file(&self, binary: &str, platform: &Platform) -> PathBuf {
        platform::program(platform, binary, self.profile, &self.folders)
    }

    /// The built program of an image, with its bill of materials.
    pub(super) fn image_program(
        &self,
        image: &'static Image,
        platform: &'static Platform,
    ) -> anyhow::Result<(Program, PathBuf)> {
        let file = self.file(image.binary, platform);
        let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let tree =
            output(self.cargo().args(sbom::tree_arguments(platform, &image.group.packages(platform))))?;
        let subject = sbom::Subject {
            image,
            platform,
            provenance: self.provenance,
            program: layout::sha256(&bytes),
            compiler: self.compiler.clone(),
        };
        let (packages, tools) = match image.tools {
            Some(tools) => {
                let packages = tools.packages(platform)?;
                let files = tools.files(&packages)?;
                (packages, files)
            }
            None => (Vec::new(), Files::new()),
        };
        let bill = sbom::bill(&subject, &sbom::crates(&tree, image.package)?, &self.checksums, &packages);
        Ok((Program { platform, bytes, tools, bill }, file))
    }

    /// Cargo, without flags of this process that would change what it builds. It finds commit and date itself
    /// (`crates/version`): crates with C code are compiled again if `SOURCE_DATE_EPOCH` changes.
    fn cargo(&self) -> Command {
        let mut cargo = own_cargo();
        cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        cargo
    }
}
