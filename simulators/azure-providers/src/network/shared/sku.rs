//! Skus of load balancers, public IPs and prefixes.

use serde_json::Value;

use azure_engine::document::{Object, enumeration, into_object};
use azure_engine::refusal::Result;

/// Reads and completes the sku of a network resource; gives its name.
pub(crate) fn sku(body: &mut Object, allowed: &[&str]) -> Result<String> {
    let mut sku = body.remove("sku").map(into_object).unwrap_or_default();
    enumeration(&mut sku, "name", allowed, true)?;
    enumeration(&mut sku, "tier", &["Regional"], true)?;
    let name = sku.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    body.insert("sku".into(), Value::Object(sku));
    Ok(name)
}
