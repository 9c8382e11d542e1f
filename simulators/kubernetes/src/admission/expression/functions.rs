//! The signatures of the functions and operators that expressions may use: CEL's own and the libraries of Kubernetes
//! 1.33.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::types::{OPTIONAL, Type};

/// One way to call a function.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Signature {
    /// The type of the receiver; `None` for a function without one.
    pub(super) target: Option<Type<'static>>,
    pub(super) arguments: Vec<Type<'static>>,
    pub(super) result: Type<'static>,
}

/// Name, then signatures: `(arguments) result`, with `target.` before those of methods. `A` and `B` are any types.
const TABLE: &str = "
!_ (bool) bool
@not_strictly_false (bool) bool
_?_:_ (bool, A, A) A
_==_ (A, A) bool
_!=_ (A, A) bool
_<_ COMPARISON
_<=_ COMPARISON
_>_ COMPARISON
_>=_ COMPARISON
_+_ (int, int) int | (uint, uint) uint | (double, double) double | (string, string) string | (bytes, bytes) bytes | \
 (list(A), list(A)) list(A) | (timestamp, duration) timestamp | (duration, timestamp) timestamp | \
 (duration, duration) duration
_-_ (int, int) int | (uint, uint) uint | (double, double) double | (timestamp, timestamp) duration | \
 (timestamp, duration) timestamp | (duration, duration) duration
_*_ (int, int) int | (uint, uint) uint | (double, double) double
_/_ (int, int) int | (uint, uint) uint | (double, double) double
_%_ (int, int) int | (uint, uint) uint
-_ (int) int | (double) double
_[_] (list(A), int) A | (map(A, B), A) B | (optional(list(A)), int) optional(A) | (optional(map(A, B)), A) optional(B)
_[?_] (list(A), int) optional(A) | (map(A, B), A) optional(B) | (optional(list(A)), int) optional(A) | \
 (optional(map(A, B)), A) optional(B)
@in (A, list(A)) bool | (A, map(A, B)) bool
size SIZE
type (A) type(A)
dyn (A) dyn
bool (bool) bool | (string) bool
bytes (bytes) bytes | (string) bytes
double (double) double | (int) double | (uint) double | (string) double
int (int) int | (uint) int | (double) int | (string) int | (timestamp) int | (duration) int
uint (uint) uint | (int) uint | (double) uint | (string) uint
string (string) string | (bool) string | (int) string | (uint) string | (double) string | (bytes) string | \
 (timestamp) string | (duration) string | (net.IP) string | (net.CIDR) string
timestamp (timestamp) timestamp | (string) timestamp | (int) timestamp
duration (duration) duration | (string) duration | (int) duration
contains string.(string) bool
endsWith string.(string) bool
startsWith string.(string) bool
matches string.(string) bool | (string, string) bool
getFullYear GETTER
getMonth GETTER
getDayOfYear GETTER
getDayOfMonth GETTER
getDate GETTER
getDayOfWeek GETTER
getHours GETTER | duration.() int
getMinutes GETTER | duration.() int
getSeconds GETTER | duration.() int
getMilliseconds GETTER | duration.() int
charAt string.(int) string
indexOf string.(string) int | string.(string, int) int | list(A).(A) int
lastIndexOf string.(string) int | string.(string, int) int | list(A).(A) int
lowerAscii string.() string
upperAscii string.() string
trim string.() string
replace string.(string, string) string | string.(string, string, int) string
split string.(string) list(string) | string.(string, int) list(string)
substring string.(int) string | string.(int, int) string
join list(string).() string | list(string).(string) string
format string.(list(dyn)) string
strings.quote (string) string
find string.(string) string
findAll string.(string) list(string) | string.(string, int) list(string)
isSorted list(int).() bool | list(uint).() bool | list(double).() bool | list(bool).() bool | list(duration).() bool | \
 list(timestamp).() bool | list(string).() bool | list(bytes).() bool
sum list(int).() int | list(uint).() uint | list(double).() double | list(duration).() duration
max EXTREME
min EXTREME
sets.contains (list(A), list(A)) bool
sets.equivalent (list(A), list(A)) bool
sets.intersects (list(A), list(A)) bool
optional.of (A) optional(A)
optional.ofNonZeroValue (A) optional(A)
optional.none () optional(A)
hasValue optional(A).() bool
value optional(A).() A
or optional(A).(optional(A)) optional(A)
orValue optional(A).(A) A
url (string) kubernetes.URL
isURL (string) bool
getScheme kubernetes.URL.() string
getHost kubernetes.URL.() string
getHostname kubernetes.URL.() string
getPort kubernetes.URL.() string
getEscapedPath kubernetes.URL.() string
getQuery kubernetes.URL.() map(string, list(string))
ip (string) net.IP | net.CIDR.() net.IP
ip.isCanonical (string) bool
isIP (string) bool
family net.IP.() int
isUnspecified net.IP.() bool
isLoopback net.IP.() bool
isLinkLocalMulticast net.IP.() bool
isLinkLocalUnicast net.IP.() bool
isGlobalUnicast net.IP.() bool
cidr (string) net.CIDR
isCIDR (string) bool
containsIP net.CIDR.(string) bool | net.CIDR.(net.IP) bool
containsCIDR net.CIDR.(string) bool | net.CIDR.(net.CIDR) bool
prefixLength net.CIDR.() int
masked net.CIDR.() net.CIDR
quantity (string) kubernetes.Quantity
isQuantity (string) bool
sign kubernetes.Quantity.() int
asInteger kubernetes.Quantity.() int
asApproximateFloat kubernetes.Quantity.() double
isInteger kubernetes.Quantity.() bool
add kubernetes.Quantity.(kubernetes.Quantity) kubernetes.Quantity | kubernetes.Quantity.(int) kubernetes.Quantity
sub kubernetes.Quantity.(kubernetes.Quantity) kubernetes.Quantity | kubernetes.Quantity.(int) kubernetes.Quantity
isGreaterThan ORDER bool
isLessThan ORDER bool
compareTo ORDER int
semver (string) kubernetes.Semver | (string, bool) kubernetes.Semver
isSemver (string) bool | (string, bool) bool
major kubernetes.Semver.() int
minor kubernetes.Semver.() int
patch kubernetes.Semver.() int
format.named (string) optional(kubernetes.NamedFormat)
format.dns1123Label () kubernetes.NamedFormat
format.dns1123Subdomain () kubernetes.NamedFormat
format.dns1035Label () kubernetes.NamedFormat
format.qualifiedName () kubernetes.NamedFormat
format.dns1123LabelPrefix () kubernetes.NamedFormat
format.dns1123SubdomainPrefix () kubernetes.NamedFormat
format.dns1035LabelPrefix () kubernetes.NamedFormat
format.labelValue () kubernetes.NamedFormat
format.uri () kubernetes.NamedFormat
format.uuid () kubernetes.NamedFormat
format.byte () kubernetes.NamedFormat
format.date () kubernetes.NamedFormat
format.datetime () kubernetes.NamedFormat
validate kubernetes.NamedFormat.(string) optional(list(string))
";

/// Macros with two variables: they are accepted, and their bodies are not checked.
pub(super) const TWO_VARIABLES: &[&str] =
    &["all", "exists", "existsOne", "transformList", "transformMap", "transformMapEntry"];

/// Expands an abbreviation of several signatures.
fn shorthand(text: &'static str) -> Vec<String> {
    const ORDERED: [&str; 8] = ["bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"];
    const NUMBERS: [&str; 3] = ["int", "uint", "double"];
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    match word {
        "COMPARISON" => {
            let same = ORDERED.iter().map(|one| format!("({one}, {one}) bool"));
            let numbers = NUMBERS.iter().flat_map(|one| {
                NUMBERS
                    .iter()
                    .filter(move |other| *other != one)
                    .map(move |other| format!("({one}, {other}) bool"))
            });
            same.chain(numbers).collect()
        }
        "SIZE" => ["string", "bytes", "list(A)", "map(A, B)"]
            .iter()
            .flat_map(|sized| [format!("({sized}) int"), format!("{sized}.() int")])
            .collect(),
        "GETTER" => vec!["timestamp.() int".to_owned(), "timestamp.(string) int".to_owned()],
        "EXTREME" => ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"]
            .iter()
            .map(|item| format!("list({item}).() {item}"))
            .collect(),
        "ORDER" => ["kubernetes.Quantity", "kubernetes.Semver"]
            .iter()
            .map(|one| format!("{one}.({one}) {rest}"))
            .collect(),
        _ => vec![text.to_owned()],
    }
}

static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Signature>>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter_map(|line| line.split_once(' '));
    lines
        .map(|(name, signatures)| {
            let texts = signatures.split(" | ").flat_map(|text| shorthand(text.trim()));
            (name, texts.filter_map(|text| signature(&text)).collect())
        })
        .collect()
});

/// The signatures of a function; `None` if there is no function with that name.
pub(super) fn named(name: &str) -> Option<&'static [Signature]> {
    FUNCTIONS.get(name).map(Vec::as_slice)
}

/// The type that a name denotes in expressions, as in `type(self) == string`.
pub(super) fn type_named(name: &str) -> Option<Type<'static>> {
    const NAMES: &[&str] = &["bool", "int", "uint", "double", "string", "bytes", "dyn"];
    let known = NAMES.contains(&name).then(|| plain(name)).or(match name {
        "list" => Some(Type::List(Box::new(Type::Dyn))),
        "map" => Some(Type::Map(Box::new(Type::Dyn), Box::new(Type::Dyn))),
        "null_type" => Some(Type::Null),
        "google.protobuf.Timestamp" => Some(Type::Timestamp),
        "google.protobuf.Duration" => Some(Type::Duration),
        OPTIONAL => Some(Type::optional(Type::Dyn)),
        _ => None,
    })?;
    Some(Type::Kind(Box::new(known)))
}

fn plain(name: &str) -> Type<'static> {
    const OPAQUE: &[&str] = &[
        "kubernetes.NamedFormat",
        "kubernetes.Quantity",
        "kubernetes.Semver",
        "kubernetes.URL",
        "net.CIDR",
        "net.IP",
    ];
    match name {
        "A" => Type::Parameter("A"),
        "B" => Type::Parameter("B"),
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        other => OPAQUE
            .iter()
            .find(|name| **name == other)
            .map_or(Type::Dyn, |name| Type::Opaque(name, Vec::new())),
    }
}

fn signature(text: &str) -> Option<Signature> {
    let (target, rest) = match text.split_once(".(") {
        Some((target, rest)) => (Some(r#type(target).0), rest),
        None => (None, text.strip_prefix('(')?),
    };
    let (mut arguments, mut rest) = (Vec::new(), rest);
    while !rest.starts_with(')') {
        let (argument, after) = r#type(rest);
        arguments.push(argument);
        rest = after.trim_start_matches([',', ' ']);
    }
    let (result, _) = r#type(rest.strip_prefix(')')?.trim_start());
    Some(Signature { target, arguments, result })
}

/// Parses one type. Returns the rest of the text, too.
fn r#type(text: &str) -> (Type<'static>, &str) {
    let end = text.find([',', '(', ')', ' ']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let Some(mut rest) = rest.strip_prefix('(') else { return (plain(name), rest) };
    let mut parts = Vec::new();
    while !rest.starts_with(')') && !rest.is_empty() {
        let (part, after) = r#type(rest);
        parts.push(part);
        rest = after.trim_start_matches([',', ' ']);
    }
    let mut parts = parts.into_iter();
    let mut part = || Box::new(parts.next().unwrap_or(Type::Dyn));
    let whole = match name {
        "list" => Type::List(part()),
        "map" => Type::Map(part(), part()),
        "type" => Type::Kind(part()),
        _ => Type::Opaque(OPTIONAL, vec![*part()]),
    };
    (whole, rest.strip_prefix(')').unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        for line in TABLE.lines().filter(|line| !line.is_empty()) {
            let (name, signatures) = line.split_once(' ').unwrap();
            let wanted: usize = signatures.split(" | ").map(|text| shorthand(text.trim()).len()).sum();
            assert_eq!(named(name).map(<[_]>::len), Some(wanted), "{line}");
        }
        let text = signature("optional(map(A, B)).(A, list(int)) optional(B)").unwrap();
        assert_eq!(text.target.unwrap().to_string(), "optional_type(map(dyn, dyn))");
        assert_eq!(text.arguments, [Type::Parameter("A"), Type::List(Box::new(Type::Int))]);
        assert_eq!(text.result, Type::optional(Type::Parameter("B")));
    }
}
