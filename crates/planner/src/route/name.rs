//! Names of routes, and what they tell about ownership: a contract with the program that this one replaces.

use ipnet::IpNet;

/// What stands between the node's name and its range. No node's name holds it: those have no underscore.
const SEPARATOR: &str = "____";

/// A range as names hold it.
fn squeezed(range: &str) -> String {
    range.chars().filter(|c| !matches!(c, ':' | '.' | '/')).collect()
}

/// The name of the route by which the pods of a node are reached: the node's name, four underscores and the range
/// without colons, dots and slash.
pub fn route_name(node: &str, range: &IpNet) -> String {
    format!("{node}{SEPARATOR}{}", squeezed(&range.to_string()))
}

/// Whose route has this name and leads to this prefix, and whether it is named as releases before two families named
/// it: after the node alone. Nobody's, as far as the name tells, if the name was made of another prefix.
pub(super) fn node_of<'a>(name: &'a str, prefix: &str, range: &IpNet) -> Option<(&'a str, bool)> {
    let Some((node, rest)) = name.split_once(SEPARATOR) else { return Some((name, true)) };
    let is_made_of = |range: &str| squeezed(range).eq_ignore_ascii_case(rest);
    let is_whole = !node.is_empty() && (is_made_of(prefix) || is_made_of(&range.to_string()));
    is_whole.then_some((node, false))
}
