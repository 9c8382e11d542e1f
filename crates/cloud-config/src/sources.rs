//! A file and a Secret as one document.

use std::fmt;

use serde_json::{Map, Value};

use crate::document;
use crate::encoding::decode;
use crate::values::Word as _;
use crate::{ConfigError, ConfigType};

/// The key that says which documents count.
const CONFIG_TYPE: &str = "cloudConfigType";

/// A parsed document, whose keys are not read yet.
#[derive(Clone, PartialEq)]
pub struct Document(pub(crate) Map<String, Value>);

impl fmt::Debug for Document {
    /// Keys alone: values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Document {
    /// Parses YAML or JSON in the encodings of [`decode`]. An empty document is an empty mapping.
    ///
    /// # Errors
    /// The bytes are not a mapping in one of both languages.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        Self::from_text(&decode(bytes)?)
    }

    /// Parses a text. A key without a value counts as not set.
    pub(crate) fn from_text(text: &str) -> Result<Self, ConfigError> {
        let mut map = document::parse(text)?;
        map.retain(|_, value| !value.is_null());
        Ok(Self(map))
    }

    /// `cloudConfigType` of a file: whether a Secret beside it counts. An unknown word means [`ConfigType::Merge`]; it
    /// is refused when the keys are read.
    pub fn config_type(&self) -> ConfigType {
        let named = self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(CONFIG_TYPE));
        named.and_then(|(_, value)| value.as_str()).and_then(ConfigType::parse).unwrap_or(ConfigType::Merge)
    }

    /// This file together with a Secret, as its `cloudConfigType` demands.
    #[must_use]
    pub fn with_secret(mut self, secret: Self) -> Self {
        match self.config_type() {
            ConfigType::File => self,
            ConfigType::Secret => secret,
            ConfigType::Merge => {
                lay_over(&mut self.0, secret.0);
                self
            }
        }
    }
}

/// Replaces the keys that `over` has, whatever their case; mappings are merged key by key, lists are replaced.
fn lay_over(base: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        let same: Vec<String> =
            base.keys().filter(|known| known.eq_ignore_ascii_case(&key)).cloned().collect();
        let mut former = None;
        for known in same {
            former = base.remove(&known).or(former);
        }
        let merged = match (former, value) {
            (Some(Value::Object(mut former)), Value::Object(value)) => {
                lay_over(&mut former, value);
                Value::Object(former)
            }
            (_, value) => value,
        };
        base.insert(key, merged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CloudConfig;

    fn document(text: &str) -> Document {
        Document::parse(text.as_bytes()).unwrap()
    }

    /// NODE-138, with the key `fromSecret` of the case, which no program reads.
    #[test]
    fn node_138_file_secret_and_merge_choose_between_the_documents() {
        for (kind, cloud, uses_metadata, is_from_secret) in [
            ("cloudConfigType: file", "AzurePublicCloud", true, false),
            ("cloudConfigType: secret", "AzureCloud", false, true),
            ("cloudConfigType: Merge", "AzureCloud", true, true),
            ("", "AzureCloud", true, true),
        ] {
            let file = document(&format!("cloud: AzurePublicCloud\nuseInstanceMetadata: true\n{kind}\n"));
            let Document(keys) = file.with_secret(document(r#"{"cloud":"AzureCloud","fromSecret":true}"#));
            let is_true = |key: &str| keys.get(key).is_some_and(|value| value == true);
            assert_eq!(keys["cloud"], cloud, "{kind}");
            assert_eq!(is_true("useInstanceMetadata"), uses_metadata, "{kind}");
            assert_eq!(is_true("fromSecret"), is_from_secret, "{kind}");
        }
    }

    #[test]
    fn a_secret_replaces_what_it_names_and_leaves_the_rest() {
        let file = "AADClientSecret: old\ntagsMap: {a: '1', b: '2'}\nsystemTags: x\nlocation: westeurope\n\
                    multipleStandardLoadBalancerConfigurations: [{name: a, primaryVMSet: b}]\n";
        let secret = "aadClientSecret: new\ntagsMap: {b: '3', c: '4'}\nlocation:\n\
                      multipleStandardLoadBalancerConfigurations: [{name: c, primaryVMSet: d}]\n";
        let merged = document(file).with_secret(document(secret));
        assert!(!format!("{merged:?}").contains("new"), "{merged:?}");
        let (config, problems) = CloudConfig::read_document(merged, &|_| None);
        assert_eq!(problems, []);
        assert_eq!(config.aad_client_secret.reveal(), "new");
        assert_eq!(config.location, "westeurope", "a key without a value changes nothing");
        assert_eq!(config.tags.values().map(String::as_str).collect::<Vec<_>>(), ["1", "3", "4"]);
        let names: Vec<_> =
            config.multiple_standard_load_balancer_configurations.iter().map(|entry| &entry.name).collect();
        assert_eq!(names, ["c"]);
    }
}
