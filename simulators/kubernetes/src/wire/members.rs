//! The table of members beside this file.

use std::collections::HashMap;
use std::sync::LazyLock;

const TABLE: &str = include_str!("members.txt");

pub(super) const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
pub(super) const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
pub(super) const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// One member of a message.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) number: u32,
    /// Left out of JSON if empty (`omitempty`).
    pub(super) optional: bool,
    /// Distinguishes empty from missing: a pointer in Go.
    pub(super) pointer: bool,
    /// Left out if it is an empty structure, too (`omitzero`).
    pub(super) zero: bool,
    /// Each of its values is a list of texts in a message of its own.
    pub(super) wrapped: bool,
    /// The definition whose members are embedded here.
    pub(super) inline: Option<Box<str>>,
}

/// The members of a definition.
#[derive(Debug, Clone, Default)]
pub(super) struct Message {
    pub(super) members: Vec<Member>,
}

impl Message {
    pub(super) fn by_number(&self, number: u32) -> Option<&Member> {
        self.members.iter().find(|member| member.number == number)
    }
}

static MESSAGES: LazyLock<HashMap<Box<str>, Message>> = LazyLock::new(|| {
    let mut messages = HashMap::new();
    let mut package = "";
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("package ") {
            package = name;
            continue;
        }
        let mut words = line.split(' ');
        let name = format!("{package}.{}", words.next().unwrap_or_default());
        let members = words.filter_map(|word| member(package, word)).collect();
        messages.insert(name.into_boxed_str(), Message { members });
    }
    messages
});

/// Parses `name?*~!=7`, or `.=2:Inline`.
fn member(package: &str, word: &'static str) -> Option<Member> {
    let (name, rest) = word.split_once('=')?;
    let (number, inline) = match rest.split_once(':') {
        Some((number, inline)) if inline.contains('.') => (number, Some(inline.into())),
        Some((number, inline)) => (number, Some(format!("{package}.{inline}").into())),
        None => (rest, None),
    };
    Some(Member {
        name: name.trim_end_matches(['?', '*', '~', '!']),
        number: number.parse().ok()?,
        optional: name.contains('?'),
        pointer: name.contains('*'),
        zero: name.contains('!'),
        wrapped: name.contains('~'),
        inline,
    })
}

pub(super) fn message(definition: &str) -> Option<&'static Message> {
    MESSAGES.get(definition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;
    use crate::schema::builtin::{definition, definition_name};
    use crate::schema::{Additional, Schema};

    /// The table contains every definition that a schema refers to, and every member of it.
    #[test]
    fn the_table_knows_every_member_of_every_kind() {
        fn names(message: &Message) -> Vec<&'static str> {
            let inner = |member: &Member| match &member.inline {
                Some(inline) => names(super::message(inline).unwrap()),
                None => vec![member.name],
            };
            message.members.iter().flat_map(inner).collect()
        }
        fn check(schema: &Schema, seen: &mut Vec<Box<str>>) {
            if let Some(name) = schema.definition.as_ref().filter(|_| !schema.properties.is_empty()) {
                if seen.contains(name) {
                    return;
                }
                seen.push(name.clone());
                let members = names(super::message(name).unwrap_or_else(|| panic!("{name} is missing")));
                for member in schema.properties.keys() {
                    let of_type = matches!(member.as_str(), "apiVersion" | "kind");
                    assert!(of_type || members.contains(&member.as_str()), "{name} lacks {member}");
                }
            }
            schema.properties.values().for_each(|link| check(link, seen));
            schema.items.iter().for_each(|link| check(link, seen));
            if let Additional::Of(link) = &schema.additional {
                check(link, seen);
            }
        }
        let mut seen = Vec::new();
        for kind in Registry::default().kinds() {
            let name = definition_name(&kind.group, &kind.version, &kind.kind);
            check(definition(&name).unwrap(), &mut seen);
        }
        assert!(seen.len() > 300, "{}", seen.len());
    }
}
