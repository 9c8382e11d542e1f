//! `tests/corpus/azure-json`: files as clusters have them today, each with the expected outcome.
//!
//! A case is a file `NAME.json` or `NAME.yaml` and with it `NAME.txt`: its subject, environment variables
//! (`environment: NAME=value`), a line `---`, and the outcome. To add one, write both without an outcome, run
//! `UPDATE_CORPUS=1 cargo test -p cloud-config --test it corpus`, and check the outcome.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cloud_config::keys::{Effect, KEYS};
use cloud_config::{CloudConfig, ConfigError};

/// The outcome of a file: every setting that differs from the defaults, and the warnings; or the refusals.
fn outcome(bytes: &[u8], environment: &BTreeMap<String, String>) -> String {
    let config = match CloudConfig::runnable(bytes, &|name| environment.get(name).cloned()) {
        Ok(config) => config,
        Err(ConfigError::Invalid(problems)) => {
            return problems.iter().map(|problem| format!("refused: {problem}\n")).collect();
        }
        Err(other) => return format!("refused: {other}\n"),
    };
    let nothing = CloudConfig::default();
    let mut text = String::new();
    for key in KEYS {
        let Effect::Applies(_) = key.effect else { continue };
        let value = crate::values::value(&config, key.name);
        if value != crate::values::value(&nothing, key.name) {
            text += &format!("{} = {value}\n", key.name);
        }
    }
    for warning in config.warnings() {
        text += &format!("warning: {warning}\n");
    }
    text
}

#[test]
fn every_file_of_the_corpus_comes_out_as_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/azure-json");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let is_text = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "txt");
    let (texts, documents): (Vec<_>, Vec<_>) = files.into_iter().partition(is_text);
    for (text, document) in texts.iter().zip(&documents) {
        let pair = text.with_extension("") == document.with_extension("");
        assert!(pair, "{} and {} do not belong together", text.display(), document.display());
    }
    assert_eq!(texts.len(), documents.len());
    assert!(documents.len() > 30);

    let update = std::env::var_os("UPDATE_CORPUS").is_some();
    let mut wrong = String::new();
    for (document, text) in documents.iter().zip(&texts) {
        let expected = std::fs::read_to_string(text).unwrap();
        let head = expected.split_once("---\n").map_or(expected.as_str(), |(head, _)| head);
        let environment: BTreeMap<String, String> = head
            .lines()
            .filter_map(|line| line.strip_prefix("environment: ")?.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let outcome = outcome(&std::fs::read(document).unwrap(), &environment);
        for secret in ["not-a-secret", "424242424242"] {
            assert!(!outcome.contains(secret), "{}: a secret is shown:\n{outcome}", document.display());
        }
        let now = format!("{head}---\n{outcome}");
        if now != expected {
            if update {
                std::fs::write(text, &now).unwrap();
            } else {
                wrong += &format!("{}:\n{outcome}\n", text.display());
            }
        }
    }
    assert!(wrong.is_empty(), "these come out otherwise than they say:\n{wrong}");
}
