//! Patches in the shape of Azure Service Operator's objects, which users of managed clusters write for members that have
//! no field.

use operator_resources::{Lookup, ObjectName, Patch, find};
use serde_json::Value;

use crate::terminal::Terminal;

const GROUP: &str = "containerservice.azure.com";

/// A patch is read on its own: it refers to no other object.
struct Nothing;

impl Lookup for Nothing {
    fn id(&self, _: &ObjectName) -> Option<String> {
        None
    }

    fn secret(&self, _: &str, _: &str) -> Option<String> {
        None
    }

    fn whole_secret(&self, _: &str) -> Option<Vec<(String, String)>> {
        None
    }

    fn config_map(&self, _: &str, _: &str) -> Option<String> {
        None
    }
}

/// Applies the patches of a member, in their order, to a document of this kind of the operator's.
///
/// # Errors
/// A patch cannot be read.
pub(crate) fn apply(
    kind: &str,
    member: &str,
    patches: Option<&[String]>,
    document: &mut Value,
) -> Result<(), Terminal> {
    for (index, text) in patches.unwrap_or_default().iter().enumerate() {
        let invalid =
            |why: String| Terminal::configuration(format!("spec.{member}[{index}] cannot be applied: {why}"));
        // What is JSON is YAML, too.
        let patch: Value = serde_saphyr::from_str(text).map_err(|error| invalid(error.to_string()))?;
        let Some(kind) = find(GROUP, kind) else { continue };
        let patch = Patch::of(kind, &patch, &Nothing).map_err(|refusal| invalid(refusal.to_string()))?;
        if let Some(awaited) = patch.awaited.first() {
            return Err(invalid(format!(
                "it refers to {awaited}, and a patch can refer to no object: write the value, or the ID (armId)"
            )));
        }
        patch.apply(document);
    }
    Ok(())
}
