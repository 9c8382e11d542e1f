//! Finds a member in a document by its path, and edits it.

use serde_json::{Value, json};

use super::case::How;
use crate::ledger::flatten::{DERIVED, is_reference, key_of};

/// Edits the member at a path, in the notation of [`crate::ledger`]. Returns whether there was something to edit.
pub(super) fn edit(document: &mut Value, place: &str, how: How) -> bool {
    edit_in(document, "", place, how)
}

fn edit_in(value: &mut Value, at: &str, place: &str, how: How) -> bool {
    match value {
        Value::Object(members) => {
            let names: Vec<String> =
                members.keys().filter(|name| !DERIVED.contains(&name.as_str())).cloned().collect();
            for name in names {
                let Some(member) = members.get_mut(&name) else { continue };
                let here = match member {
                    Value::String(_) if name.ends_with("AddressPrefix") => {
                        format!("{at}/{name}es/{}", key_of(member, 0))
                    }
                    _ => format!("{at}/{name}"),
                };
                let is_it = here == place && (!member.is_object() || is_reference(member));
                match how {
                    How::Change if is_it => return change(member),
                    How::Remove if is_it => return members.remove(&name).is_some(),
                    _ if is_it => return false,
                    _ if leads_to(&here, place) => {
                        if edit_in(member, &here, place, how) {
                            return true;
                        }
                        let is_list = member.as_array().is_some_and(|items| !items.is_empty());
                        if how == How::RemoveAll && is_list {
                            *member = json!([]);
                            return true;
                        }
                    }
                    _ => {}
                }
            }
            false
        }
        Value::Array(items) => {
            let at_key = |(number, item): (usize, &Value)| {
                let here = format!("{at}/{}", key_of(item, number));
                here == place || leads_to(&here, place)
            };
            let Some(number) = items.iter().enumerate().position(at_key) else { return false };
            let here = format!("{at}/{}", key_of(&items[number], number));
            if here != place && edit_in(&mut items[number], &here, place, how) {
                return true;
            }
            match how {
                How::RemoveItem | How::Remove => {
                    items.remove(number);
                    true
                }
                How::Change if items[number].is_string() => change(&mut items[number]),
                How::Change | How::RemoveAll | How::Delete => false,
            }
        }
        _ => false,
    }
}

fn leads_to(here: &str, place: &str) -> bool {
    place.strip_prefix(here).is_some_and(|rest| rest.starts_with('/'))
}

/// Pairs of values that replace each other.
const WORDS: [(&str, &str); 6] = [
    ("Tcp", "Udp"),
    ("Allow", "Deny"),
    ("Static", "Dynamic"),
    ("Inbound", "Outbound"),
    ("Default", "SourceIP"),
    ("Http", "Tcp"),
];

/// Another value of the same kind.
fn change(value: &mut Value) -> bool {
    match value {
        Value::Bool(set) => *set = !*set,
        Value::Number(number) => *value = (number.as_i64().unwrap_or_default() + 1).into(),
        Value::String(text) => *text = another(text),
        Value::Object(members) => match members.get_mut("id") {
            Some(Value::String(id)) => id.push('x'),
            _ => return false,
        },
        _ => return false,
    }
    true
}

fn another(text: &str) -> String {
    let word = WORDS.iter().find_map(|(one, other)| match text {
        _ if text == *one => Some(*other),
        _ if text == *other => Some(*one),
        _ => None,
    });
    if let Some(word) = word {
        return word.to_owned();
    }
    if let Ok(number) = text.parse::<u32>() {
        return (number + 1).to_string();
    }
    if text.parse::<std::net::Ipv4Addr>().is_ok() {
        return "198.51.100.77".to_owned();
    }
    format!("{text}x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_finds_the_member_that_the_ledger_names() {
        let before = json!({"tags": {"a": "1"}, "properties": {"rules": [
            {"name": "R", "properties": {"port": 1, "probe": {"id": "/p"}, "destinationAddressPrefix": "1.2.3.4",
                "ports": ["80", "81"]}},
            {"name": "S"}]}});
        let edited = |place: &str, how| {
            let mut document = before.clone();
            assert!(edit(&mut document, place, how), "{place}");
            document
        };
        assert_eq!(edited("/tags/a", How::Remove)["tags"], json!({}));
        let rule = "/properties/rules/r/properties";
        assert_eq!(
            edited(&format!("{rule}/port"), How::Change)["properties"]["rules"][0]["properties"]["port"],
            2
        );
        let probe = edited(&format!("{rule}/probe"), How::Remove);
        assert!(probe["properties"]["rules"][0]["properties"].get("probe").is_none());
        let prefix = edited(&format!("{rule}/destinationAddressPrefixes/1.2.3.4"), How::Change);
        assert_eq!(
            prefix["properties"]["rules"][0]["properties"]["destinationAddressPrefix"],
            "198.51.100.77"
        );
        let ports = edited(&format!("{rule}/ports/80"), How::RemoveItem);
        assert_eq!(ports["properties"]["rules"][0]["properties"]["ports"], json!(["81"]));
        let item = edited(&format!("{rule}/port"), How::RemoveItem);
        assert_eq!(item["properties"]["rules"], json!([{"name": "S"}]));
        let all = edited(&format!("{rule}/port"), How::RemoveAll);
        assert_eq!(all["properties"]["rules"], json!([]));
    }
}
