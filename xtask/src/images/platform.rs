//! The platforms of images: how a program is built for each, and what the building machine needs.

use std::path::{Path, PathBuf};

/// A platform.
#[derive(Debug, PartialEq, Eq)]
pub struct Platform {
    /// Its name on the command line and in names of files.
    pub name: &'static str,
    /// `os` of the Image Specification.
    pub os: &'static str,
    /// `architecture` of the Image Specification.
    pub architecture: &'static str,
    /// The target of the compiler.
    pub target: &'static str,
    /// The end of the program's file name.
    pub suffix: &'static str,
    /// Programs and files of Debian that compile C code and link; a name without a slash is looked for in `PATH`.
    needs: &'static [&'static str],
    /// What `scripts/image_tools.sh` calls it.
    tools: &'static str,
}

/// linux/amd64.
pub const AMD64: Platform = Platform {
    name: "amd64",
    os: "linux",
    architecture: "amd64",
    target: "x86_64-unknown-linux-musl",
    suffix: "",
    needs: &["musl-gcc"],
    tools: "amd64",
};

/// linux/arm64.
pub const ARM64: Platform = Platform {
    name: "arm64",
    os: "linux",
    architecture: "arm64",
    target: "aarch64-unknown-linux-musl",
    suffix: "",
    needs: &["aarch64-linux-gnu-gcc", "/usr/lib/aarch64-linux-musl/musl-gcc.specs"],
    tools: "arm64",
};

/// windows/amd64, for HostProcess containers: they need no files of Windows in their image, and run on each build of it.
pub const WINDOWS: Platform = Platform {
    name: "windows-amd64",
    os: "windows",
    architecture: "amd64",
    target: "x86_64-pc-windows-gnu",
    suffix: ".exe",
    needs: &["x86_64-w64-mingw32-gcc"],
    tools: "windows",
};

/// All platforms.
pub const PLATFORMS: [&Platform; 3] = [&AMD64, &ARM64, &WINDOWS];

impl Platform {
    /// The platform with this name.
    ///
    /// # Errors
    /// No platform has this name; the text lists the names.
    pub fn parse(name: &str) -> Result<&'static Self, String> {
        PLATFORMS.into_iter().find(|platform| platform.name == name).ok_or_else(|| {
            let names = PLATFORMS.map(|platform| platform.name);
            format!("choose from {}", names.join(", "))
        })
    }

    /// What the machine lacks for building, with the remedy.
    ///
    /// # Errors
    /// A compiler, a file or the compiler's target is missing.
    pub fn ready(&self, installed: &[String], path: &str) -> Result<(), String> {
        let in_path = |name: &str| path.split(':').any(|folder| Path::new(folder).join(name).is_file());
        let there = |need: &str| if need.contains('/') { Path::new(need).exists() } else { in_path(need) };
        let lacks = self.needs.iter().find(|need| !there(need)).copied();
        let lacks = lacks.or((!installed.iter().any(|target| target == self.target)).then_some(self.target));
        match lacks {
            Some(lack) => {
                Err(format!("{}: {lack} is missing: run scripts/image_tools.sh {}", self.name, self.tools))
            }
            None => Ok(()),
        }
    }
}

/// The environment of the build of a program: folders that its messages would name otherwise.
#[derive(Debug)]
pub struct Folders {
    /// The checkout.
    pub root: PathBuf,
    /// Cargo's own folder, where sources of crates are.
    pub cargo: PathBuf,
    /// The folder of builds.
    pub target: PathBuf,
}

/// The arguments of the `cargo build` of some binaries, with the features of all `packages`. Messages of panics name source files: their folders get names that are the
/// same on each machine.
pub fn arguments(
    platform: &Platform,
    packages: &[&str],
    binaries: &[&str],
    profile: &str,
    folders: &Folders,
) -> Vec<String> {
    let renamed = [(&folders.root, "/cerulean"), (&folders.cargo, "/cargo")]
        .map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display()));
    // A list of strings is the same in JSON and in TOML.
    let flags = serde_json::json!(renamed);
    let arguments = ["build", "--locked", "--profile", profile, "--target", platform.target];
    let packages = packages.iter().flat_map(|package| ["--package", *package]);
    let binaries = binaries.iter().flat_map(|binary| ["--bin", *binary]);
    let mut arguments: Vec<String> =
        arguments.into_iter().chain(packages).chain(binaries).map(str::to_owned).collect();
    arguments.extend(["--config".to_owned(), format!("target.{}.rustflags={flags}", platform.target)]);
    arguments
}

/// The program that this build makes.
pub fn program(platform: &Platform, binary: &str, profile: &str, folders: &Folders) -> PathBuf {
    folders.target.join(platform.target).join(profile).join(format!("{binary}{}", platform.suffix))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_missing_tool_is_named_with_the_script_that_installs_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let installed = [AMD64.target.to_owned()];
        assert_eq!(
            AMD64.ready(&installed, &path).unwrap_err(),
            "amd64: musl-gcc is missing: run scripts/image_tools.sh amd64"
        );
        std::fs::write(folder.path().join("musl-gcc"), "").unwrap();
        assert_eq!(AMD64.ready(&installed, &path), Ok(()));
        assert_eq!(
            AMD64.ready(&[], &path).unwrap_err(),
            "amd64: x86_64-unknown-linux-musl is missing: run scripts/image_tools.sh amd64"
        );
        assert_eq!(Platform::parse("arm64"), Ok(&ARM64));
        assert_eq!(Platform::parse("s390x").unwrap_err(), "choose from amd64, arm64, windows-amd64");
    }

    #[test]
    fn folders_of_the_building_machine_are_renamed() {
        let folders =
            Folders { root: "/home/me/c".into(), cargo: "/home/me/.cargo".into(), target: "/t".into() };
        let arguments =
            arguments(&ARM64, &["cloud-node-manager"], &["azure-cloud-node-manager"], "small", &folders);
        assert_eq!(
            arguments.last().unwrap(),
            "target.aarch64-unknown-linux-musl.rustflags=\
             [\"--remap-path-prefix=/home/me/c=/cerulean\",\"--remap-path-prefix=/home/me/.cargo=/cargo\"]"
        );
        let program = program(&WINDOWS, "azure-cloud-node-manager", "small", &folders);
        assert_eq!(program, Path::new("/t/x86_64-pc-windows-gnu/small/azure-cloud-node-manager.exe"));
    }
}
