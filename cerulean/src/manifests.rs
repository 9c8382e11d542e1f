//! Manifests as kubectl reads them: files, folders, standard input.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use kube::Client;
use serde_json::Value;
use simulated_cluster::manifests;

use crate::screen::Screen;

/// The annotation with the manifest that `kubectl apply` applied last.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Members that only the API server writes.
const OF_THE_SERVER: [&str; 9] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The maximum number of wrong letters in a kind that counts as a misspelled `Service`.
const MAX_MISSPELT: usize = 2;

/// Which manifests to read.
#[derive(Debug, Default, clap::Args)]
pub struct ManifestArguments {
    /// Manifests: files, folders of .yaml, .yml and .json files, or - for standard input; repeatable.
    #[arg(short = 'f', long = "filename", visible_alias = "manifest", value_name = "FILE", num_args = 1.., value_delimiter = ',')]
    pub files: Vec<PathBuf>,
    /// Read the folders inside of folders, too.
    #[arg(short = 'R', long)]
    pub recursive: bool,
}

/// One object of a manifest.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The file that it is in.
    pub source: String,
    /// The object.
    pub object: Value,
}

impl Manifest {
    /// All objects of manifests, each with its source.
    ///
    /// # Errors
    /// A text is not a manifest.
    pub fn read_all(manifests: &[(&str, &str)]) -> anyhow::Result<Vec<Self>> {
        let mut all = Vec::new();
        for (source, text) in manifests {
            let objects = manifests::read(source, text)?.into_iter();
            all.extend(objects.map(|object| Self { source: (*source).to_owned(), object }));
        }
        Ok(all)
    }

    /// A text member of the object; empty if it is not a text.
    pub fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        self.text("/kind")
    }
}

/// An object without the server's members, so that the output of `kubectl get -o yaml` can be applied again.
pub fn declared(object: &Value) -> Value {
    let mut declared = object.clone();
    if let Some(members) = declared.as_object_mut() {
        members.remove("status");
    }
    if let Some(metadata) = declared.get_mut("metadata").and_then(Value::as_object_mut) {
        for member in OF_THE_SERVER {
            metadata.remove(member);
        }
    }
    if let Some(annotations) = declared.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    declared
}

/// Whether a manifest is a core Service of Kubernetes, and not one of another group.
///
/// # Errors
/// It is misspelled, because the cluster has no such kind, or the cluster did not answer.
pub async fn is_service(client: &Client, manifest: &Manifest) -> anyhow::Result<bool> {
    let (api_version, kind) = (manifest.text("/apiVersion"), manifest.kind());
    if (api_version, kind) == ("v1", "Service") {
        return Ok(true);
    }
    if strsim::osa_distance(&kind.to_ascii_lowercase(), "service") <= MAX_MISSPELT
        && !has_kind(client, manifest).await?
    {
        bail!(
            "{}: no matches for kind \"{kind}\" in version \"{api_version}\"; did you mean kind Service in \
             version v1?",
            manifest.source
        );
    }
    Ok(false)
}

/// Whether the cluster has a manifest's kind.
///
/// # Errors
/// The cluster did not answer.
pub async fn has_kind(client: &Client, manifest: &Manifest) -> anyhow::Result<bool> {
    match manifests::find_kind(client, manifest.text("/apiVersion"), manifest.kind()).await {
        Ok(found) => Ok(found.is_some()),
        Err(error) => {
            bail!("cannot learn which kinds the cluster has: {}", manifests::describe_api_error(&error))
        }
    }
}

impl ManifestArguments {
    /// Reads all objects in the order of the arguments, and of names within folders.
    ///
    /// # Errors
    /// A file cannot be read or is not a manifest, a folder contains no manifests, or there is no object in any.
    pub fn load(&self, screen: Screen) -> anyhow::Result<Vec<Manifest>> {
        let mut all = Vec::new();
        for path in &self.files {
            for (source, text) in self.texts(path)? {
                let objects = manifests::read(&source, &text)?;
                if objects.is_empty() {
                    screen.note(format_args!("{source} holds no objects"));
                }
                all.extend(objects.into_iter().map(|object| Manifest { source: source.clone(), object }));
            }
        }
        if all.is_empty() && !self.files.is_empty() {
            bail!("there are no objects in what -f names");
        }
        Ok(all)
    }

    /// The names and texts for one argument.
    fn texts(&self, path: &Path) -> anyhow::Result<Vec<(String, String)>> {
        let name = path.display().to_string();
        if name == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
            return Ok(vec![("standard input".to_owned(), text)]);
        }
        if name.starts_with("https://") || name.starts_with("http://") {
            bail!(
                "-f {name}: URLs are not fetched; pipe the manifest in: curl -fsS {name} | cerulean ... -f -"
            );
        }
        let is_folder = std::fs::metadata(path).with_context(|| format!("-f {name}"))?.is_dir();
        let files = if is_folder { files_of(path, self.recursive)? } else { vec![path.to_owned()] };
        if files.is_empty() {
            let remedy = if self.recursive { "" } else { "; -R reads the folders inside of it, too" };
            bail!("-f {name}: the folder has no files with the extensions .json, .yaml, .yml{remedy}");
        }
        let read = |file: PathBuf| {
            let name = file.display().to_string();
            let text = std::fs::read_to_string(&file).with_context(|| format!("-f {name}"))?;
            Ok((name, text))
        };
        files.into_iter().map(read).collect()
    }
}

/// The manifests of a folder, by name.
fn files_of(folder: &Path, recursive: bool) -> anyhow::Result<Vec<PathBuf>> {
    let failed = || format!("-f {}", folder.display());
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(failed)? {
        entries.push(entry.with_context(failed)?.path());
    }
    entries.sort();
    let mut files = Vec::new();
    for path in entries {
        if path.is_dir() {
            if recursive {
                files.extend(files_of(&path, recursive)?);
            }
        } else if path.extension().is_some_and(|end| ["json", "yaml", "yml"].iter().any(|e| end == *e)) {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    fn service(name: &str) -> String {
        format!("apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n")
    }

    fn load(path: &Path, recursive: bool) -> anyhow::Result<Vec<String>> {
        let arguments = ManifestArguments { files: vec![path.to_owned()], recursive };
        let manifests = arguments.load(Screen::of_this_process())?;
        Ok(manifests.iter().map(|manifest| manifest.text("/metadata/name").to_owned()).collect())
    }

    #[test]
    fn folders_are_read_by_name_and_within_folders_only_when_asked() {
        let folder = folder(&[
            ("b.yml", &service("b")),
            ("a.yaml", &service("a")),
            ("notes.txt", "not a manifest"),
            ("deeper/c.yaml", &service("c")),
        ]);
        assert_eq!(load(folder.path(), false).unwrap(), ["a", "b"]);
        assert_eq!(load(folder.path(), true).unwrap(), ["a", "b", "c"]);
    }

    #[test]
    fn nothing_to_read_is_an_error_that_says_so() {
        let empty = folder(&[("empty.yaml", "# nothing\n"), ("deeper/none.txt", "")]);
        let said = |path: &Path| format!("{:#}", load(path, false).unwrap_err());
        assert_eq!(said(&empty.path().join("empty.yaml")), "there are no objects in what -f names");
        assert!(said(&empty.path().join("deeper")).contains(".json, .yaml, .yml; -R reads"));
        assert!(said(&empty.path().join("absent.yaml")).contains("absent.yaml: No such file"));
        assert!(said(Path::new("https://example.com/x.yaml")).contains("curl"));
    }
}
