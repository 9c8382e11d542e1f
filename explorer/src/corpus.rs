//! The corpus: one file per entry, with a header in comments and the manifest below it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use simulated_cluster::manifests;

use crate::expectation::{Expectation, Header, Upstream, Written};

/// The expected results for the Services of an entry, by `namespace/name`.
pub type Expectations = BTreeMap<String, Expectation>;

/// An entry of the corpus.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The file's name without folder and extension.
    pub name: String,
    /// The folder's name.
    pub folder: String,
    /// The bug because of which it fails today.
    pub known: Option<String>,
    /// Why the replaced program does not serve it, or serves it differently.
    pub upstream: Option<Upstream>,
    /// Names of resources that may stay changed after its Services are deleted.
    pub stays_changed: Vec<String>,
    /// The manifest's objects.
    pub objects: Vec<Value>,
    /// The expected results.
    pub expect: Expectations,
    /// Consecutive changes, each with its expected results.
    pub then: Vec<Change>,
}

/// A change and its expected results.
#[derive(Debug, Clone)]
pub struct Change {
    /// Merge patches by `namespace/name`.
    pub patches: BTreeMap<String, Value>,
    /// Services that are deleted.
    pub delete: Vec<String>,
    /// The expected results for Services; other Services are as before.
    pub expect: Expectations,
}

/// The folder of the Services.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/services")
}

/// Reads all entries of a folder and its subfolders, sorted by name.
///
/// # Errors
/// The file that cannot be read, and why.
pub fn read(folder: &Path) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let listed = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for file in listed {
            let path = file.map_err(|error| format!("{}: {error}", folder.display()))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "yaml") {
                let text = std::fs::read_to_string(&path);
                let entry = text.map_err(|error| error.to_string()).and_then(|text| {
                    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    let inside = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    parse(&name, &text).map(|entry| Entry { folder: inside, ..entry })
                });
                entries.push(entry.map_err(|error| format!("{}: {error}", path.display()))?);
            }
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(twice) = entries.windows(2).find(|two| two[0].name == two[1].name) {
        return Err(format!("two entries are called {}", twice[0].name));
    }
    Ok(entries)
}

/// Reads an entry. Its header is in the comments above the manifest, starting at `# expect:` or `# known:`; what
/// precedes them is prose.
///
/// # Errors
/// The part that cannot be parsed.
pub fn parse(name: &str, text: &str) -> Result<Entry, String> {
    let comments = text.lines().take_while(|line| line.starts_with('#'));
    let header: Vec<&str> = comments
        .map(|line| line.strip_prefix("# ").or(line.strip_prefix('#')).unwrap_or(line))
        .skip_while(|line| {
            !["expect:", "known:", "stays changed:", "upstream:"].iter().any(|key| line.starts_with(key))
        })
        .collect();
    let header: Header =
        serde_saphyr::from_str(&header.join("\n")).map_err(|error| format!("the header: {error}"))?;
    let objects = manifests::read(name, text).map_err(|error| error.to_string())?;
    let expect = complete(header.expect)?;
    for key in expect.keys() {
        if !objects.iter().any(|object| object["kind"] == "Service" && key_of(object) == *key) {
            return Err(format!("the manifest has no Service {key}"));
        }
    }
    if expect.is_empty() {
        return Err("the header says nothing under `expect`".to_owned());
    }
    let then = header
        .then
        .into_iter()
        .map(|then| Ok(Change { patches: then.change, delete: then.delete, expect: complete(then.expect)? }));
    Ok(Entry {
        name: name.to_owned(),
        folder: String::new(),
        known: header.known,
        upstream: header.upstream,
        stays_changed: header.stays_changed,
        objects,
        expect,
        then: then.collect::<Result<_, String>>()?,
    })
}

fn complete(written: BTreeMap<String, Written>) -> Result<Expectations, String> {
    let complete = |(key, written): (String, Written)| match written.complete() {
        Ok(expectation) => Ok((key, expectation)),
        Err(error) => Err(format!("{key}: {error}")),
    };
    written.into_iter().map(complete).collect()
}

/// `namespace/name` of an object.
pub fn key_of(object: &Value) -> String {
    let text = |member: &str| object["metadata"][member].as_str().unwrap_or("default").to_owned();
    format!("{}/{}", text("namespace"), text("name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "# A web server.\n#\n# expect:\n#   default/web:\n#     served: external IPv4\n\
        #     rules:\n#       - TCP 80\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n";

    #[test]
    fn an_entry_is_a_header_and_a_manifest() {
        let entry = parse("web", ENTRY).unwrap();
        let Expectation::Served(served) = &entry.expect["default/web"] else { panic!("{entry:?}") };
        assert_eq!(served.rules.iter().map(ToString::to_string).collect::<Vec<_>>(), ["IPv4 TCP 80"]);
        assert!(served.from.iter().all(|clients| clients.anyone));
        assert_eq!(served.writes.public_ip, 1);
    }

    #[test]
    fn mistakes_in_an_entry_are_named() {
        let error = parse("web", &ENTRY.replace("default/web:", "default/wob:")).unwrap_err();
        assert_eq!(error, "the manifest has no Service default/wob");
        let error = parse("web", &ENTRY.replace("external", "outside")).unwrap_err();
        assert!(error.contains("external or internal"), "{error}");
        assert!(parse("web", &ENTRY.replace("rules", "roles")).unwrap_err().contains("roles"));
    }
}
