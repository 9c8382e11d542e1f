//! The table of keys is correct: for the reader, for the other crates, and in the documentation.

use std::path::{Path, PathBuf};

use cloud_config::CloudConfig;
use cloud_config::keys::{Effect, KEYS, ValueType};
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sample(key: &str, value_type: ValueType) -> Value {
    match value_type {
        ValueType::Text | ValueType::Secret if key == "tags" => json!("a=b"),
        ValueType::Text | ValueType::Secret if key == "resourceManagerEndpoint" => json!("https://x"),
        ValueType::Text if key.ends_with("Type") && key.starts_with("loadBalancer") => json!("nodeIP"),
        ValueType::Text if key == "clusterServiceLoadBalancerHealthProbeMode" => json!("shared"),
        ValueType::Text if key == "vmType" => json!("standard"),
        ValueType::Text if key == "cloudConfigType" => json!("secret"),
        ValueType::Text | ValueType::Secret => json!("x"),
        ValueType::Boolean if key == "excludeMasterFromStandardLB" => json!(false),
        ValueType::Boolean => json!(true),
        ValueType::Whole => json!(77),
        ValueType::Number => json!(7.5),
        ValueType::List => json!([{"name": "a", "primaryVMSet": "b"}]),
        ValueType::Mapping(inner) => {
            inner.iter().map(|(name, value_type)| ((*name).to_owned(), sample(name, *value_type))).collect()
        }
        ValueType::MapOf(inner) => json!({"a": sample("a", *inner)}),
        ValueType::Any => json!({"anything": ["goes"]}),
    }
}

#[test]
fn keys_with_effect_change_the_configuration_and_others_are_named_in_a_warning() {
    let nothing = CloudConfig::default();
    for key in KEYS {
        // Some keys take effect only together with another one.
        let mut document = json!({"cloudProviderBackoff": true});
        document[key.name] = sample(key.name, key.value_type);
        let config = CloudConfig::parse(&document.to_string()).unwrap();
        let warnings: Vec<String> = config.warnings().iter().map(ToString::to_string).collect();
        match key.effect {
            Effect::Applies(what) => {
                assert!(!what.is_empty());
                let values = [&config, &nothing].map(|config| crate::values::value(config, key.name));
                assert_ne!(values[0], values[1], "{} changes nothing", key.name);
                assert!(warnings.is_empty(), "{warnings:?}");
            }
            Effect::None(reason) => {
                assert_eq!(warnings, [format!("{}: no effect: {reason}", key.name)], "{document}");
            }
        }
    }
}

#[test]
fn a_key_that_asks_for_what_happens_anyway_is_no_warning() {
    for key in KEYS {
        let empty = match key.value_type {
            ValueType::Text | ValueType::Secret | ValueType::Any => json!(""),
            ValueType::Boolean => json!(false),
            ValueType::Whole | ValueType::Number => json!(0),
            ValueType::List => json!([]),
            ValueType::Mapping(_) | ValueType::MapOf(_) => json!({}),
        };
        let document = json!({key.name: empty, "useManagedIdentityExtension": null});
        assert_eq!(CloudConfig::parse(&document.to_string()).unwrap().warnings(), [], "{document}");
    }
    let defaults = "vmssCacheTTLInSeconds: 600\ncloudConfigType: Merge\ncloudProviderBackoffExponent: 1.5\n";
    assert_eq!(CloudConfig::parse(defaults).unwrap().warnings(), []);
}

fn sources(folder: &Path, found: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("tests") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push_str(text.split("#[cfg(test)]").next().unwrap());
        }
    }
}

/// A field without a reader has no effect, whatever the table says.
#[test]
fn every_field_of_the_configuration_has_a_reader() {
    let mut read = String::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap().map(Result::unwrap) {
        if entry.file_name() != "cloud-config" {
            sources(&entry.path().join("src"), &mut read);
        }
    }
    for file in ["refusals.rs", "effective.rs"] {
        let path = root().join("crates/cloud-config/src").join(file);
        read.push_str(&std::fs::read_to_string(path).unwrap());
    }
    let config = std::fs::read_to_string(root().join("crates/cloud-config/src/config.rs")).unwrap();
    let fields: Vec<&str> = config
        .lines()
        .filter_map(|line| line.strip_prefix("    pub ")?.split_once(": ").map(|(field, _)| field))
        .filter(|field| field.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit()))
        .collect();
    assert!(fields.len() > 40, "{fields:?}");
    for field in fields {
        let read = read.match_indices(&format!(".{field}")).any(|(at, found)| {
            !read[at + found.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        });
        assert!(read, "{field} has no reader: take it out of CloudConfig and mark its key as without effect");
    }
}

/// `docs/resources/azure-json.md` is generated from the table: `UPDATE_DOCS=1 cargo test -p cloud-config`.
#[test]
fn the_documentation_is_made_from_the_table() {
    let mut text = String::from(
        "# azure.json\n\n\
         The file that `--cloud-config` names: JSON or YAML. Keys may have any case, unknown ones are ignored with a\n\
         warning in the log. A text may be written as a number or a boolean; a number or a boolean in quotes is refused.\n\
         UTF-8, with or without a byte order mark, and UTF-16 with one are read.\n\n\
         This page is made from the table of keys in `crates/cloud-config/src/keys/table.rs`.\n\n\
         ## Keys with an effect\n\n\
         | key | value | default | what it does |\n|---|---|---|---|\n",
    );
    for key in KEYS {
        if let Effect::Applies(what) = key.effect {
            let default = if key.default.is_empty() { String::new() } else { format!("`{}`", key.default) };
            text += &format!("| `{}` | {} | {default} | {what} |\n", key.name, key.value_type.describe());
        }
    }
    text += "\n## Keys without effect\n\n\
             They are accepted, because the files of today hold them. The log names those that ask for something.\n\n\
             | keys | why |\n|---|---|\n";
    let mut reasons: Vec<&str> = Vec::new();
    for key in KEYS {
        if let Effect::None(reason) = key.effect
            && !reasons.contains(&reason)
        {
            reasons.push(reason);
        }
    }
    for reason in reasons {
        let names: Vec<String> = KEYS
            .iter()
            .filter(|key| matches!(key.effect, Effect::None(why) if why == reason))
            .map(|key| format!("`{}`", key.name))
            .collect();
        text += &format!("| {} | {reason} |\n", names.join(", "));
    }
    let path = root().join("docs/resources/azure-json.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "{} is not as the table says: run with UPDATE_DOCS=1", path.display());
}
