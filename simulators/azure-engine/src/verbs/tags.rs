//! The tags of a resource or group.

use serde_json::Value;

use crate::document::Object;
use crate::provider::AzureState;
use crate::refusal::{Code, Refusal, Result};

const INVALID_TAG_NAME_CHARACTERS: Code = Code::azures(400, "InvalidTagNameCharacters");
const INVALID_TAG_NAME_LENGTH: Code = Code::ours(400, "InvalidTagNameLength");
const INVALID_TAG_VALUE_LENGTH: Code = Code::azures(400, "InvalidTagValueLength");

impl AzureState {
    /// Tags are an object of texts, not too many and not too long; no tags at all are left out.
    pub fn check_tags(&self, body: &mut Object) -> Result<()> {
        let tags = match body.get("tags") {
            None => return Ok(()),
            Some(Value::Object(tags)) if tags.values().all(Value::is_string) => tags,
            Some(_) => return Err(Refusal::bad_content("tags must be an object of texts")),
        };
        if tags.is_empty() {
            body.remove("tags");
            return Ok(());
        }
        let most = self.limit("resources.tagsPerResource");
        if tags.len() as u64 > most {
            let text = format!(
                "Too many tags on the resource/resource group. Requested tag count - '{}'. Maximum number of tags \
                 allowed - '{most}'.",
                tags.len()
            );
            return Err(Code::azures(400, "TooManyTags").says(text));
        }
        let (name_length, value_length) =
            (self.limit("resources.tagNameLength"), self.limit("resources.tagValueLength"));
        let length = |text: &str| text.chars().count() as u64;
        let reserved = |c: char| c.is_control() || matches!(c, '<' | '>' | '%' | '&' | '\\' | '?' | '/');
        for (name, value) in tags {
            let value = value.as_str().unwrap_or_default();
            // Azure's own tags begin so, and hold resource ids.
            let hidden = name.starts_with("hidden-");
            let (code, text) = if name.is_empty() || (name.contains(reserved) && !hidden) {
                let text = format!(
                    "The tag names '{name}' have reserved characters '<,>,%,&,\\,?,/' or control characters."
                );
                (INVALID_TAG_NAME_CHARACTERS, text)
            } else if length(name) > name_length {
                (INVALID_TAG_NAME_LENGTH, too_long("name", name, name_length))
            } else if length(value) > value_length {
                (INVALID_TAG_VALUE_LENGTH, too_long("value", value, value_length))
            } else {
                continue;
            };
            return Err(code.says(text));
        }
        Ok(())
    }
}

fn too_long(what: &str, text: &str, most: u64) -> String {
    format!(
        "Tag {what} too large.  Following tag {what} '{text}' exceeded the maximum length. Maximum allowed length for \
         tag {what} - '{most}' characters."
    )
}
