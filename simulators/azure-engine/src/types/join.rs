//! Rights on what a request's body references: a caller that lets a resource use another one needs the right to join
//! that.

use serde_json::Value;

use faults::glob::matches;

/// Members of requests about some types that reference other resources, and the action that the caller must be allowed
/// there.
#[derive(Debug)]
pub struct Join {
    /// Full types of what is written, with wildcards.
    pub of: &'static str,
    /// Members, at whatever depth, that hold an id, `{"id": …}`, a list of either, or an object with ids for names.
    pub members: &'static [&'static str],
    /// Such as `Microsoft.Network/virtualNetworks/subnets/join/action`.
    pub action: &'static str,
}

/// Returns every id in the members of a request's body that the caller must be allowed to join, with the action.
pub fn joined<'a>(
    joins: impl Iterator<Item = &'static Join>,
    resource_type: &str,
    body: &'a Value,
) -> Vec<(&'static str, &'a str)> {
    let joins: Vec<&Join> = joins.filter(|join| matches(join.of, resource_type)).collect();
    let mut found = Vec::new();
    visit(&joins, body, &mut found);
    found
}

fn visit<'a>(joins: &[&'static Join], value: &'a Value, found: &mut Vec<(&'static str, &'a str)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| visit(joins, item, found)),
        Value::Object(object) => {
            object.iter().for_each(|(name, member)| visit_member(joins, name, member, found))
        }
        _ => {}
    }
}

fn visit_member<'a>(
    joins: &[&'static Join],
    name: &str,
    member: &'a Value,
    found: &mut Vec<(&'static str, &'a str)>,
) {
    let names = |join: &&&Join| join.members.iter().any(|known| known.eq_ignore_ascii_case(name));
    let Some(join) = joins.iter().find(names) else { return visit(joins, member, found) };
    ids(member, &mut |id| found.push((join.action, id)));
    // Beside the id stand members of the request, but what is embedded is read back.
    for (name, beside) in member.as_object().into_iter().flatten().filter(|(name, _)| *name != "properties") {
        visit_member(joins, name, beside, found);
    }
}

fn ids<'a>(value: &'a Value, found: &mut dyn FnMut(&'a str)) {
    match value {
        Value::String(id) => found(id),
        Value::Array(items) => items.iter().for_each(|item| ids(item, found)),
        Value::Object(object) => match object.get("id").and_then(Value::as_str) {
            Some(id) => found(id),
            None => object.keys().filter(|key| key.starts_with('/')).for_each(|key| found(key)),
        },
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Join, joined};

    #[test]
    fn ids_are_found_in_each_form_and_not_in_what_is_embedded() {
        static JOINS: [Join; 2] = [
            Join { of: "N/things*", members: &["subnet", "pools", "identities", "keys"], action: "join" },
            Join { of: "N/others", members: &["subnet"], action: "never" },
        ];
        let body = json!({ "id": "/own", "properties": {
            "parts": [{ "Subnet": { "id": "/s", "properties": { "pools": [{ "id": "/embedded" }] } } }],
            "beside": { "subnet": { "id": "/s2", "keys": { "id": "/k" } } },
            "pools": [{ "id": "/p1" }, "/p2"],
            "identities": { "/i": {} },
            "readOnly": [{ "id": "/r" }],
        } });
        let mut found = joined(JOINS.iter(), "N/things/parts", &body);
        found.sort_unstable();
        assert_eq!(found, ["/i", "/k", "/p1", "/p2", "/s", "/s2"].map(|id| ("join", id)));
    }
}
