//! The content of a page: sections, their manifests, and the expected results of objects.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A comment in an object's document with an expected result.
const EXPECT: &str = "# expect: ";
/// A comment that continues the line above.
const MORE: &str = "#   ";
/// Comments with the requirements of a section: feature gates, or a region without zones.
const CONDITIONS: [&str; 2] = ["# gates: ", "# zones: "];

/// The expected result of an object (`docs/clusters/README.md`).
#[derive(Debug, Clone, PartialEq)]
pub enum Expected {
    /// A resource in Azure, or an object, that contains this.
    Holds { place: Place, pattern: Value },
    /// The resource does not exist.
    None(Place),
    /// Admission refuses it with this message.
    Refused(String),
    /// A Warning event about this object contains this text.
    Warns { place: Place, words: String },
}

/// `type/name` of a resource in Azure, or `Kind/name` of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub kind: String,
    pub name: String,
}

impl Place {
    /// Whether it is an object of Kubernetes: kinds begin with a capital letter, types in Azure do not.
    pub fn is_object(&self) -> bool {
        self.kind.starts_with(|first: char| first.is_ascii_uppercase())
    }

    fn parse(text: &str) -> Self {
        let (kind, name) = text.split_once('/').unwrap_or_else(|| panic!("{text} is no place"));
        Self { kind: kind.to_owned(), name: name.to_owned() }
    }
}

impl Expected {
    fn parse(text: &str) -> Self {
        if let Some(words) = text.strip_prefix("refused: ") {
            return Self::Refused(words.to_owned());
        }
        if let Some(place) = text.strip_prefix("no ") {
            return Self::None(Place::parse(place));
        }
        if let Some((place, words)) = text.split_once(" warns: ") {
            return Self::Warns { place: Place::parse(place), words: words.to_owned() };
        }
        let (place, pattern) = text.split_once(' ').unwrap_or((text, "{}"));
        let pattern = serde_saphyr::from_str(pattern).unwrap_or_else(|error| panic!("{text}: {error}"));
        Self::Holds { place: Place::parse(place), pattern }
    }
}

/// An object of a manifest, with its expected results.
#[derive(Debug, Clone)]
pub struct Example {
    pub object: Value,
    pub expected: Vec<Expected>,
}

/// A part of a page below a heading.
#[derive(Debug, Clone, Default)]
pub struct Section {
    pub title: String,
    pub examples: Vec<Example>,
    pub conditions: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Page {
    pub file: String,
    pub sections: Vec<Section>,
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clusters")
}

/// The pages of the folder.
pub fn pages() -> Vec<Page> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().filter(|file| file.extension().is_some_and(|it| it == "md")).map(|file| page(file)).collect()
}

fn page(path: &Path) -> Page {
    let file = path.file_name().unwrap().to_string_lossy().into_owned();
    let text = fs::read_to_string(path).unwrap();
    let mut sections = vec![Section { title: "its beginning".to_owned(), ..Section::default() }];
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")) {
            sections.push(Section { title: heading.to_owned(), ..Section::default() });
        } else if let Some(kind) = line.trim_start().strip_prefix("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
            let section = sections.last_mut().unwrap();
            // A manifest must be marked as YAML, or no test would apply it.
            let is_manifest = block.iter().any(|line| line.trim_start().starts_with("apiVersion:"));
            assert!(
                kind == "yaml" || !is_manifest && !kind.contains("ya"),
                "{file}: {}: {kind}",
                section.title
            );
            if kind == "yaml" {
                read(&block.join("\n"), &format!("{file}: {}", section.title), section);
            }
        }
    }
    Page { file, sections }
}

fn read(block: &str, title: &str, section: &mut Section) {
    for document in block.split("\n---\n") {
        let object: Value =
            serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{title}: {error}"));
        assert!(object["kind"].is_string() && object["apiVersion"].is_string(), "{title}: {document}");
        let mut comments: Vec<String> = Vec::new();
        for line in document.lines() {
            if CONDITIONS.iter().any(|condition| line.starts_with(condition)) {
                section.conditions.push(line.trim_start_matches("# ").to_owned());
            } else if let Some(text) = line.strip_prefix(EXPECT) {
                comments.push(text.to_owned());
            } else if let (Some(text), Some(last)) = (line.strip_prefix(MORE), comments.last_mut()) {
                *last += " ";
                *last += text.trim();
            }
        }
        let expected = comments.iter().map(|comment| Expected::parse(comment)).collect();
        section.examples.push(Example { object, expected });
    }
}

/// The anchor of a heading in links.
pub fn anchor(heading: &str) -> String {
    let kept = |c: char| c.is_alphanumeric() || c == ' ' || c == '-' || c == '_';
    heading.to_lowercase().chars().filter(|c| kept(*c)).collect::<String>().replace(' ', "-")
}
