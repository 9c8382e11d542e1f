//! The envelope: the members around the properties of every resource.

use crate::document::Object;
use crate::refusal::{Refusal, Result};

/// Members that clients may write.
const WRITABLE: [&str; 9] =
    ["location", "tags", "sku", "zones", "identity", "plan", "kind", "extendedLocation", "properties"];

/// Members that clients send back as they read them; they are ignored.
const ECHOED: [&str; 13] = [
    "apiVersion",
    "etag",
    "id",
    "instanceId",
    "managedBy",
    "managedByExtended",
    "name",
    "placement",
    "resourceGroup",
    "resources",
    "scope",
    "systemData",
    "type",
];

/// The known members of a sent document, in Azure's spelling.
///
/// # Errors
/// Refuses a document with a member that no resource has, such as a property beside `properties`.
pub(crate) fn known(body: Object) -> Result<Object> {
    let mut known = Object::new();
    for (member, value) in body {
        let is = |name: &&&str| name.eq_ignore_ascii_case(&member);
        match WRITABLE.iter().find(is) {
            Some(name) => drop(known.insert((*name).into(), value)),
            None if ECHOED.iter().any(|name| is(&name)) => {}
            None => {
                return Err(Refusal::bad_content(format_args!(
                    "Could not find member '{member}' on object of type 'ResourceDefinition'. Path '{member}'."
                )));
            }
        }
    }
    Ok(known)
}
