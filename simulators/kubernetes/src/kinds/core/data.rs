//! What ConfigMaps and Secrets have in common.

use crate::kinds::prelude::*;

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
    (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// kube-apiserver's limit for the data of a Secret or ConfigMap: 1 MiB.
const MAX_DATA_BYTES: usize = 1024 * 1024;

/// Validates the keys, which are file names, and the total size.
pub(crate) fn keys_and_size(object: &Value) -> Result<(), Invalid> {
    let mut size = 0;
    for (key, value) in members(object, "/data").chain(members(object, "/binaryData")) {
        let good = !key.is_empty()
            && key.len() <= 253
            && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
            && key != "."
            && !key.starts_with("..");
        if !good {
            return Err(Invalid::text(format!("data[{key}]"), key, CONFIG_KEY));
        }
        size += value.as_str().unwrap_or_default().len();
    }
    if size > MAX_DATA_BYTES {
        return Err(Invalid::new("data", format!("Too long: must have at most {MAX_DATA_BYTES} bytes")));
    }
    Ok(())
}

/// An object that is marked immutable stays so, and keeps its data.
pub(crate) fn stays_sealed(old: &Value, new: &Value, causes: &mut Causes) {
    const WHY: &str = "field is immutable when `immutable` is set";
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    for member in ["immutable", "data", "binaryData"] {
        if old.get(member) != new.get(member) {
            causes.push(Invalid::forbidden(member, WHY));
        }
    }
}
