//! The bill of materials of a program, in CycloneDX: the crates that are linked into it, with licences, checksums, and which of
//! them needs which, and the packages of Debian beside it. It comes from `cargo tree` and Cargo.lock alone, so that equal sources give equal bills.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::catalogue::Image;
use super::platform::Platform;
use super::tools::Package;
use crate::provenance::Provenance;

/// The media type of a bill.
pub const MEDIA_TYPE: &str = "application/vnd.cyclonedx+json";

/// The crate whose data the lowest layer has.
const AUTHORITIES: &str = "webpki-root-certs";

/// The arguments of the `cargo tree` that [`crates`] reads.
pub fn tree_arguments(platform: &Platform, packages: &[&str]) -> Vec<String> {
    let arguments = ["tree", "--locked", "--target", platform.target];
    let packages = packages.iter().flat_map(|package| ["--package", *package]);
    let form = ["--edges", "normal,no-proc-macro", "--prefix", "depth", "--format", "\t{p}\t{l}"];
    arguments.into_iter().chain(packages).chain(form).map(str::to_owned).collect()
}

/// A crate by its name and version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crate {
    name: String,
    version: String,
}

impl Crate {
    fn new(name: &str, version: &str) -> Self {
        Self { name: name.to_owned(), version: version.to_owned() }
    }

    fn url(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// What is known of a crate.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Entry {
    license: String,
    needs: BTreeSet<Crate>,
}

/// The crates of a package in the output of `cargo tree` of packages that are built together.
///
/// # Errors
/// A line is not as [`tree_arguments`] asks for, or none is of the package.
pub fn crates(tree: &str, package: &str) -> anyhow::Result<BTreeMap<Crate, Entry>> {
    let mut all = crates_of_all(tree)?;
    let this = all.keys().find(|one| one.name == package);
    let mut waiting = vec![this.with_context(|| format!("cargo tree printed no line of {package}"))?.clone()];
    let mut crates = BTreeMap::new();
    while let Some(one) = waiting.pop() {
        // A crate that several need waits several times.
        if let Some(entry) = all.remove(&one) {
            waiting.extend(entry.needs.iter().cloned());
            crates.insert(one, entry);
        }
    }
    Ok(crates)
}

/// One crate a line, with its depth.
fn crates_of_all(tree: &str) -> anyhow::Result<BTreeMap<Crate, Entry>> {
    let mut crates: BTreeMap<Crate, Entry> = BTreeMap::new();
    let mut path: Vec<Crate> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let unread = || format!("cargo tree printed {line:?}");
        let mut columns = line.split('\t');
        let (depth, package, license) = (columns.next(), columns.next(), columns.next());
        let depth: usize = depth.and_then(|depth| depth.parse().ok()).with_context(unread)?;
        let mut words = package.unwrap_or_default().split(' ');
        let name = words.next().with_context(unread)?;
        let version = words.next().and_then(|version| version.strip_prefix('v')).with_context(unread)?;
        let this = Crate::new(name, version);
        path.truncate(depth);
        if let Some(above) = path.last() {
            crates.entry(above.clone()).or_default().needs.insert(this.clone());
        }
        // What a line with (*) needs stands at the first line of that crate.
        let license = license.unwrap_or_default().trim_end_matches(" (*)").trim();
        crates.entry(this.clone()).or_default().license = license.replace('/', " OR ");
        path.push(this);
    }
    Ok(crates)
}

/// The checksums in Cargo.lock; crates of the workspace have none.
pub fn checksums(lock: &str) -> BTreeMap<Crate, String> {
    let packages = lock.split("[[package]]");
    let sums = packages.filter_map(|package| {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
            line.and_then(|value| value.strip_suffix('"'))
        };
        Some((Crate::new(value("name")?, value("version")?), value("checksum")?.to_owned()))
    });
    sums.collect()
}

/// What a bill is of.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The image.
    pub image: &'a Image,
    /// Its platform.
    pub platform: &'a Platform,
    /// Its sources.
    pub provenance: &'a Provenance,
    /// The SHA-256 of the program.
    pub program: String,
    /// The compiler, as `rustc --version` prints it; its standard library is in the program.
    pub compiler: String,
}

/// The bill.
pub fn bill(
    subject: &Subject<'_>,
    tree: &BTreeMap<Crate, Entry>,
    checksums: &BTreeMap<Crate, String>,
    packages: &[Package],
) -> Value {
    let Subject { image, platform, provenance, program, compiler } = subject;
    let this = Crate::new(image.package, &provenance.version);
    let mut components: Vec<Value> = tree
        .iter()
        .filter(|(package, _)| **package != this)
        .map(|(package, entry)| component("library", package, &entry.license, checksums.get(package)))
        .collect();
    if platform.os == "linux"
        && let Some((package, sum)) = checksums.iter().find(|(package, _)| package.name == AUTHORITIES)
    {
        components.push(component("data", package, "CDLA-Permissive-2.0", Some(sum)));
    }
    let release = compiler.split(' ').nth(1).unwrap_or(compiler);
    components.push(json!({
        "type": "library",
        "bom-ref": "rust-std",
        "name": "rust-std",
        "version": release,
        "description": format!("the standard library of {compiler}, with the C library of {}", platform.target),
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
    }));
    components.extend(packages.iter().map(|package| {
        let Package { name, version, architecture, sum } = package;
        let url = format!("pkg:deb/debian/{name}@{version}?arch={architecture}");
        json!({
            "type": "library", "bom-ref": url, "name": name, "version": version, "purl": url,
            "hashes": [{"alg": "SHA-256", "content": sum}],
        })
    }));
    let dependencies: Vec<Value> = tree
        .iter()
        .map(|(package, entry)| {
            let needs: Vec<String> = entry.needs.iter().map(Crate::url).collect();
            json!({"ref": package.url(), "dependsOn": needs})
        })
        .collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": provenance.date.to_string(),
            "component": {
                "type": "application",
                "bom-ref": this.url(),
                "name": image.name,
                "version": provenance.version,
                "description": image.description,
                "purl": this.url(),
                "licenses": [{"expression": env!("CARGO_PKG_LICENSE")}],
                "hashes": [{"alg": "SHA-256", "content": program}],
                "properties": [
                    {"name": "cerulean:commit", "value": provenance.commit},
                    {"name": "cerulean:platform", "value": format!("{}/{}", platform.os, platform.architecture)},
                ],
            },
        },
        "components": components,
        "dependencies": dependencies,
    })
}

fn component(kind: &str, package: &Crate, license: &str, checksum: Option<&String>) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": package.url(),
        "name": package.name,
        "version": package.version,
        "purl": package.url(),
    });
    if !license.is_empty() {
        component["licenses"] = json!([{"expression": license}]);
    }
    if let Some(checksum) = checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use jiff::Timestamp;

    use super::super::catalogue::IMAGES;
    use super::super::platform::AMD64;
    use super::*;

    /// Of two programs: what the second one needs stands below the first one, where both need it.
    const TREE: &str = "0\tcloud-node-manager v0.1.0 (/home/me/cerulean/crates/cloud-node-manager)\tApache-2.0\n\
        1\thyper v1.12.0\tMIT/Apache-2.0\n\
        2\tbytes v1.12.1\tMIT\n\
        1\tkube v5.0.0\tApache-2.0\n\n\
        0\thealth-probe-proxy v0.1.0 (/home/me/cerulean/crates/health-probe-proxy)\tApache-2.0\n\
        1\tanyhow v1.0.104\tMIT\n\
        1\tbytes v1.12.1\tMIT (*)\n\
        1\thyper v1.12.0\tMIT/Apache-2.0 (*)\n";
    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"bytes\"\nversion = \"1.12.1\"\nsource = \"registry\"\n\
        checksum = \"abc\"\n\n[[package]]\nname = \"health-probe-proxy\"\nversion = \"0.1.0\"\ndependencies = [\n \"bytes\",\n]\n";

    #[test]
    fn a_bill_names_each_crate_once_with_licence_checksum_and_needs() {
        let provenance = Provenance {
            version: "0.1.0".to_owned(),
            commit: "894fce43dc47".to_owned(),
            date: Timestamp::from_second(1_700_000_000).unwrap(),
            source: None,
        };
        let subject = Subject {
            image: IMAGES.iter().find(|image| image.name == "health-probe-proxy").unwrap(),
            platform: &AMD64,
            provenance: &provenance,
            program: "0123".to_owned(),
            compiler: "rustc 1.95.0 (59807616e 2026-04-14)".to_owned(),
        };
        let package = |name: &str| Package {
            name: name.to_owned(),
            version: "2.38.1-5+deb12u3".to_owned(),
            architecture: "amd64".to_owned(),
            sum: "4567".to_owned(),
        };
        let tree = crates(TREE, "health-probe-proxy").unwrap();
        let bill = bill(&subject, &tree, &checksums(LOCK), &[package("util-linux")]);
        let components = bill["components"].as_array().unwrap();
        let names: Vec<&str> =
            components.iter().map(|component| component["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["anyhow", "bytes", "hyper", "rust-std", "util-linux"]);
        assert_eq!(components[4]["purl"], "pkg:deb/debian/util-linux@2.38.1-5+deb12u3?arch=amd64");
        assert_eq!(components[1]["hashes"][0]["content"], "abc");
        assert_eq!(components[2]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(components[3]["version"], "1.95.0");
        let needs = &bill["dependencies"];
        let of_program = ["pkg:cargo/anyhow@1.0.104", "pkg:cargo/bytes@1.12.1", "pkg:cargo/hyper@1.12.0"];
        let of =
            |reference: &str| needs.as_array().unwrap().iter().find(|one| one["ref"] == reference).unwrap();
        assert_eq!(of("pkg:cargo/health-probe-proxy@0.1.0")["dependsOn"], json!(of_program));
        assert_eq!(of("pkg:cargo/hyper@1.12.0")["dependsOn"], json!(["pkg:cargo/bytes@1.12.1"]));
        let text = bill.to_string();
        assert!(!text.contains("/home/me"), "{text}");
        assert_eq!(bill["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
    }

    #[test]
    fn a_tree_of_another_form_is_refused() {
        let problem = crates("bytes v1.12.1", "bytes").unwrap_err();
        assert_eq!(problem.to_string(), "cargo tree printed \"bytes v1.12.1\"");
        let problem = crates(TREE, "manager").unwrap_err();
        assert_eq!(problem.to_string(), "cargo tree printed no line of manager");
    }
}
