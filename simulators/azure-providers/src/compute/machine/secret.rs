//! What Azure takes in and never gives back.

use serde_json::Value;

use azure_engine::document::{Object, strip};

/// Takes the secrets out of the profile of a system.
pub(crate) fn strip_from_system(os: &mut Object) {
    strip(os, &["adminPassword"]);
    let unattended = os
        .get_mut("windowsConfiguration")
        .and_then(|windows| windows.get_mut("additionalUnattendContent"))
        .and_then(Value::as_array_mut);
    for part in unattended.into_iter().flatten().filter_map(Value::as_object_mut) {
        strip(part, &["content"]);
    }
}

/// Takes out of what is shown, and of what is kept where there is no guest, what only a guest is told: `properties` of a machine, or the profile of a set.
pub(crate) fn conceal(profile: &mut Object) {
    if let Some(os) = profile.get_mut("osProfile").and_then(Value::as_object_mut) {
        strip(os, &["customData"]);
    }
    let extensions = profile
        .get_mut("extensionProfile")
        .and_then(|extensions| extensions.get_mut("extensions"))
        .and_then(Value::as_array_mut);
    for extension in extensions.into_iter().flatten() {
        if let Some(properties) = extension.get_mut("properties").and_then(Value::as_object_mut) {
            strip(properties, &["protectedSettings", "protectedSettingsFromKeyVault"]);
        }
    }
}
