//! Nodes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::metadata::{label_value, qualified_name};
use super::{Invalid, list_at, text_at};

/// The taint that every new node gets from the API server (admission plugin
/// `TaintNodesByCondition`); kube-controller-manager removes it when the node is ready.
pub(super) const NOT_READY: &str = "node.kubernetes.io/not-ready";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(super) fn default_on_create(object: &mut Value) {
    let Value::Object(node) = object else { return };
    let spec = node.entry("spec").or_insert_with(|| json!({}));
    let Value::Object(spec) = spec else { return };
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    if taints.is_null() {
        *taints = json!([]);
    }
    if let Value::Array(taints) = taints
        && !taints.iter().any(|taint| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule")
    {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
}

pub(super) fn validate(object: &Value) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for (index, taint) in list_at(object, "/spec/taints").iter().enumerate() {
        // The API server places taints under metadata in its messages.
        let field = format!("metadata.taints[{index}]");
        let (key, value, effect) =
            (text_at(taint, "/key"), text_at(taint, "/value"), text_at(taint, "/effect"));
        qualified_name(key).map_err(|why| Invalid::text(format!("{field}.key"), key, &why))?;
        label_value(value).map_err(|why| Invalid::text(format!("{field}.value"), value, &why))?;
        if effect.is_empty() {
            return Err(Invalid::required(format!("{field}.effect"), ""));
        }
        if !EFFECTS.contains(&effect) {
            return Err(Invalid::unsupported(format!("{field}.effect"), effect, &EFFECTS));
        }
        if !seen.insert((key, effect)) {
            let why = format!(
                "core.Taint{{Key:{key:?}, Value:{value:?}, Effect:{effect:?}, TimeAdded:<nil>}}: \
                 taints must be unique by key and effect pair"
            );
            return Err(Invalid::duplicate(field, &why));
        }
    }
    for (index, cidr) in list_at(object, "/spec/podCIDRs").iter().enumerate() {
        let cidr = cidr.as_str().unwrap_or_default();
        if !is_cidr(cidr) {
            let why = format!("[]string{{{cidr:?}}}");
            return Err(Invalid::value(format!("spec.podCIDRs[{index}]"), &why, "must be valid CIDR"));
        }
    }
    Ok(())
}

pub(super) fn validate_update(old: &Value, object: &Value) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for (index, address) in list_at(object, "/status/addresses").iter().enumerate() {
        let (kind, address) = (text_at(address, "/type"), text_at(address, "/address"));
        if !seen.insert((kind, address)) {
            let value = format!("core.NodeAddress{{Type:{kind:?}, Address:{address:?}}}");
            return Err(Invalid::duplicate(format!("status.addresses[{index}]"), &value));
        }
    }
    let before = list_at(old, "/spec/podCIDRs");
    if !before.is_empty() && before != list_at(object, "/spec/podCIDRs") {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        return Err(Invalid::forbidden("spec.podCIDRs", why));
    }
    let before = text_at(old, "/spec/providerID");
    if !before.is_empty() && before != text_at(object, "/spec/providerID") {
        let why = "node updates may not change providerID except from \"\" to valid";
        return Err(Invalid::forbidden("spec.providerID", why));
    }
    Ok(())
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let Ok(bits) = bits.parse::<u8>() else { return false };
    match address.parse() {
        Ok(std::net::IpAddr::V4(_)) => bits <= 32,
        Ok(std::net::IpAddr::V6(_)) => bits <= 128,
        Err(_) => false,
    }
}
