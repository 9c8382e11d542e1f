//! Names of routes and the ownership that follows from them: a contract with the replaced program.

use ipnet::IpNet;

/// The separator between the node's name and its range. No node's name contains it, because underscores are not allowed
/// there.
const SEPARATOR: &str = "____";

/// A range in the form used in names.
fn squeezed(range: &str) -> String {
    range.chars().filter(|c| !matches!(c, ':' | '.' | '/')).collect()
}

/// The name of the route to the pods of a node: the node's name, four underscores and the range without colons, dots
/// and slash.
pub fn route_name(node: &str, range: &IpNet) -> String {
    format!("{node}{SEPARATOR}{}", squeezed(&range.to_string()))
}

/// The node of a route with this name and prefix, and whether the route is named after the node alone, as in releases
/// before dual-stack. `None` if the name was made from another prefix.
pub(super) fn node_of<'a>(name: &'a str, prefix: &str, range: &IpNet) -> Option<(&'a str, bool)> {
    let Some((node, rest)) = name.split_once(SEPARATOR) else { return Some((name, true)) };
    let is_made_of = |range: &str| squeezed(range).eq_ignore_ascii_case(rest);
    let is_whole = !node.is_empty() && (is_made_of(prefix) || is_made_of(&range.to_string()));
    is_whole.then_some((node, false))
}
