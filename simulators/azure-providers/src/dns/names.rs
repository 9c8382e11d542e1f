//! Names of zones and of their record sets.

use azure_types::ResourceId;

use azure_engine::document::Object;
use azure_engine::refusal::{Code, Refusal};

pub(crate) fn bad(name: &str) -> Refusal {
    Code::ours(400, "InvalidResourceName").says(format_args!("The resource name '{name}' is invalid."))
}

/// Whether a text is a label of a domain name. Services have underscores in theirs.
fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Whether a text is a domain name, with or without the dot at its end.
pub(crate) fn is_domain(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Whether a name is valid for a zone: two to 34 labels.
pub(crate) fn is_zone(name: &str) -> bool {
    is_domain(name) && !name.ends_with('.') && (2..=34).contains(&name.split('.').count())
}

/// Whether a name is valid for a record set: relative to its zone, `@` for the zone itself, `*` as the first label.
pub(crate) fn is_relative(name: &str) -> bool {
    let rest = name.strip_prefix("*.").unwrap_or(name);
    matches!(name, "@" | "*") || (is_domain(rest) && !rest.ends_with('.'))
}

/// The id as the service spells it: names of groups, zones and records in lower case.
fn spelled(id: &ResourceId) -> ResourceId {
    let group = id.group_name().unwrap_or_default().to_lowercase();
    let mut spelled = ResourceId::group(id.subscription_id(), &group);
    for (at, (kind, name)) in id.type_and_name_pairs().into_iter().enumerate() {
        let name = name.to_lowercase();
        spelled = match at {
            0 => spelled.resource(id.namespace().unwrap_or_default(), kind, &name),
            _ => spelled.child(kind, &name),
        };
    }
    spelled
}

/// Gives a document its id and name as the service spells them.
pub(crate) fn spell(document: &mut Object, id: &ResourceId) {
    let id = spelled(id);
    document.insert("name".into(), id.name().into());
    document.insert("id".into(), id.as_str().into());
}

/// The full domain name of a record set.
pub(crate) fn fqdn(zone: &str, name: &str) -> String {
    let zone = zone.to_lowercase();
    if name == "@" { format!("{zone}.") } else { format!("{}.{zone}.", name.to_lowercase()) }
}

#[cfg(test)]
mod tests {
    use super::{fqdn, is_relative, is_zone};

    #[test]
    fn names_are_domains() {
        for (name, fits) in
            [("a.b", true), ("local", false), ("a..b", false), ("a.b.", false), ("a.-b", false)]
        {
            assert_eq!(is_zone(name), fits, "{name}");
        }
        for (name, fits) in [
            ("@", true),
            ("*", true),
            ("*.a", true),
            ("a.*", false),
            ("_sip._tcp", true),
            ("a b", false),
            ("www.", false),
        ] {
            assert_eq!(is_relative(name), fits, "{name}");
        }
        assert_eq!(fqdn("Zone.local", "@"), "zone.local.");
        assert_eq!(fqdn("zone.local", "WWW"), "www.zone.local.");
    }
}
