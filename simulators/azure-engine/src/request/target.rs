//! The grammar of Resource Manager paths.

/// What a path names, with the caller's spelling of every name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `/subscriptions`
    Subscriptions,
    /// `/tenants`
    Tenants,
    /// `/providers` and `/providers/{ns}`, as the whole tenant sees them.
    TenantProviders(Option<String>),
    /// Anything else, within a subscription.
    Within(String, Scope),
}

/// What a path names inside its subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The subscription itself.
    Subscription,
    /// Its locations.
    Locations,
    /// Its resource groups.
    Groups,
    /// One resource group.
    Group(String),
    /// Every resource of a group (`None`: of the subscription).
    Resources(Option<String>),
    /// The providers' records.
    Providers,
    /// The record of one provider.
    Provider(String),
    /// `providers/{ns}/register` and the like.
    ProviderAction(String, String),
    /// An operation: namespace, key, whether its final answer is asked for.
    Operation(String, String, bool),
    /// An operation on a group, by its key.
    GroupOperation(String),
    /// A resource, list, child, view or action: group, namespace, segments behind it.
    Resource(Option<String>, String, Vec<String>),
    /// An extension of a resource that belongs to another provider, such as its tags.
    Extension(Extension),
}

/// `.../providers/{ns}/{type}/{name}/providers/{by}/{below}`: an extension of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// The group of the resource it lies on.
    pub group: Option<String>,
    /// The namespace of the resource it lies on.
    pub namespace: String,
    /// Types and names of the resource it lies on.
    pub segments: Vec<String>,
    /// The namespace of the provider it belongs to.
    pub by: String,
    /// The segments behind it.
    pub below: Vec<String>,
}

/// Why a path is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadPath {
    /// No form that Resource Manager has.
    Unknown,
    /// A segment is empty (`//`).
    EmptySegment,
    /// A percent sequence or character that is not allowed in names.
    BadCharacter,
}

/// Longest name of a resource.
const MAX_NAME_LENGTH: usize = 260;

impl Target {
    /// Reads a path. Fixed words are compared ignoring case.
    pub fn parse(path: &str) -> Result<Self, BadPath> {
        let trimmed = path.strip_suffix('/').unwrap_or(path);
        let raw = trimmed.strip_prefix('/').ok_or(BadPath::Unknown)?;
        let mut segments = Vec::new();
        for segment in raw.split('/') {
            if segment.is_empty() {
                return Err(BadPath::EmptySegment);
            }
            segments.push(decode(segment)?);
        }
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        let is = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
        let (subscription, rest) = match words.as_slice() {
            [first] if is(first, "subscriptions") => return Ok(Self::Subscriptions),
            [first] if is(first, "tenants") => return Ok(Self::Tenants),
            [first] if is(first, "providers") => return Ok(Self::TenantProviders(None)),
            [first, namespace] if is(first, "providers") => {
                return Ok(Self::TenantProviders(Some((*namespace).into())));
            }
            [first, subscription, rest @ ..] if is(first, "subscriptions") => (*subscription, rest),
            _ => return Err(BadPath::Unknown),
        };
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let scope = match rest {
            [] => Scope::Subscription,
            [word] if is(word, "locations") => Scope::Locations,
            [word] if is(word, "resources") => Scope::Resources(None),
            [word] if is(word, "providers") => Scope::Providers,
            [word] if is(word, "resourceGroups") => Scope::Groups,
            [word, key] if is(word, "operationresults") => Scope::GroupOperation((*key).into()),
            [word, namespace] if is(word, "providers") => Scope::Provider((*namespace).into()),
            [word, namespace, action]
                if is(word, "providers") && (is(action, "register") || is(action, "unregister")) =>
            {
                Scope::ProviderAction((*namespace).into(), (*action).into())
            }
            [word, namespace, locations, _, kind, key]
                if is(word, "providers") && is(locations, "locations") && is_operation(kind) =>
            {
                Scope::Operation((*namespace).into(), (*key).into(), is_result(kind))
            }
            [word, namespace, below @ ..] if is(word, "providers") => {
                Scope::of_resource(None, namespace, owned(below))
            }
            [word, group] if is(word, "resourceGroups") => Scope::Group((*group).into()),
            [word, group, resources] if is(word, "resourceGroups") && is(resources, "resources") => {
                Scope::Resources(Some((*group).into()))
            }
            [word, _, providers, namespace, kind, key]
                if is(word, "resourceGroups") && is(providers, "providers") && is_group_operation(kind) =>
            {
                Scope::Operation((*namespace).into(), (*key).into(), is_result(kind))
            }
            [word, group, providers, namespace, below @ ..]
                if is(word, "resourceGroups") && is(providers, "providers") && !below.is_empty() =>
            {
                Scope::of_resource(Some((*group).into()), namespace, owned(below))
            }
            _ => return Err(BadPath::Unknown),
        };
        Ok(Self::Within(subscription.into(), scope))
    }
}

impl Target {
    /// The full type that a path below a provider names, known or not, as the caller spells it.
    pub fn requested_type(&self) -> Option<String> {
        let Self::Within(_, Scope::Resource(_, namespace, segments)) = self else { return None };
        let types: Vec<&str> = segments.iter().step_by(2).map(String::as_str).collect();
        Some(format!("{namespace}/{}", types.join("/")))
    }
}

impl Scope {
    fn of_resource(group: Option<String>, namespace: &str, mut segments: Vec<String>) -> Self {
        // A second `providers` stands where a type would.
        let second = (2..segments.len())
            .step_by(2)
            .find(|at| segments.get(*at).is_some_and(|segment| segment.eq_ignore_ascii_case("providers")));
        let Some(at) = second else { return Self::Resource(group, namespace.into(), segments) };
        let mut behind = segments.split_off(at).into_iter().skip(1);
        let by = behind.next().unwrap_or_default();
        Self::Extension(Extension {
            group,
            namespace: namespace.into(),
            segments,
            by,
            below: behind.collect(),
        })
    }
}

/// Whether a segment below a location holds operations: `operations`, `DiskOperations`,
/// `operationResults`.
fn is_operation(segment: &str) -> bool {
    segment.to_ascii_lowercase().ends_with("operations") || is_group_operation(segment)
}

/// Whether a segment below a provider holds the operations of a group, such as `privateDnsOperationStatuses`.
fn is_group_operation(segment: &str) -> bool {
    segment.to_ascii_lowercase().ends_with("operationstatuses") || is_result(segment)
}

/// Whether a segment holds the final answers of operations.
fn is_result(segment: &str) -> bool {
    segment.to_ascii_lowercase().ends_with("operationresults")
}

/// Decodes `%xx` and refuses characters that are not allowed in names.
fn decode(segment: &str) -> Result<String, BadPath> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit =
                |byte: Option<u8>| byte.and_then(|b| char::from(b).to_digit(16)).ok_or(BadPath::BadCharacter);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push((high * 16 + low) as u8);
        } else {
            bytes.push(byte);
        }
    }
    let text = String::from_utf8(bytes).map_err(|_| BadPath::BadCharacter)?;
    let forbidden =
        |c: char| c.is_control() || matches!(c, '<' | '>' | '%' | '&' | ':' | '\\' | '?' | '/' | '#');
    if text.is_empty()
        || text == "."
        || text == ".."
        || text.len() > MAX_NAME_LENGTH
        || text.contains(forbidden)
    {
        return Err(BadPath::BadCharacter);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_in_any_case() {
        let within = |scope| Ok(Target::Within("s".into(), scope));
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for (path, expected) in [
            ("/subscriptions", Ok(Target::Subscriptions)),
            ("/subscriptions/s", within(Scope::Subscription)),
            ("/Subscriptions/s/resourcegroups/G", within(Scope::Group("G".into()))),
            ("/subscriptions/s/resourceGroups/", within(Scope::Groups)),
            ("/subscriptions/s/operationresults/abc", within(Scope::GroupOperation("abc".into()))),
            ("/subscriptions/s/providers/N", within(Scope::Provider("N".into()))),
            (
                "/subscriptions/s/providers/N/locations/l/operations/o",
                within(Scope::Operation("N".into(), "o".into(), false)),
            ),
            (
                "/subscriptions/s/resourceGroups/g/providers/N/privateDnsOperationStatuses/bw==",
                within(Scope::Operation("N".into(), "bw==".into(), false)),
            ),
            (
                "/subscriptions/s/resourceGroups/g/providers/N/privateDnsOperationResults/bw==",
                within(Scope::Operation("N".into(), "bw==".into(), true)),
            ),
            ("/subscriptions/s/providers/N/t", within(Scope::Resource(None, "N".into(), list(&["t"])))),
            (
                "/subscriptions/s/resourceGroups/g/providers/N/t/a%20b/c",
                within(Scope::Resource(Some("g".into()), "N".into(), list(&["t", "a b", "c"]))),
            ),
            ("/subscriptions/s/resourceGroups//providers/N/t", Err(BadPath::EmptySegment)),
            ("/subscriptions/s/resourceGroups/g/providers/N/t/%2e%2e", Err(BadPath::BadCharacter)),
            ("/subscriptions/s/resourceGroups/g/providers/N/t/a%2Fb", Err(BadPath::BadCharacter)),
            ("/subscriptions/s/resourceGroups/g/providers/N/t/a%zz", Err(BadPath::BadCharacter)),
            ("/subscriptions/s/resourceGroups/g/providers", Err(BadPath::Unknown)),
            ("/tenants", Ok(Target::Tenants)),
            ("/providers/N", Ok(Target::TenantProviders(Some("N".into())))),
            ("/providers/N/t", Err(BadPath::Unknown)),
            (
                "/subscriptions/s/resourceGroups/g/providers/N/t/a/Providers/M/u/b",
                within(Scope::Extension(Extension {
                    group: Some("g".into()),
                    namespace: "N".into(),
                    segments: list(&["t", "a"]),
                    by: "M".into(),
                    below: list(&["u", "b"]),
                })),
            ),
            ("", Err(BadPath::Unknown)),
        ] {
            assert_eq!(Target::parse(path), expected, "{path}");
        }
    }
}
