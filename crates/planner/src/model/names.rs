//! Names of Azure resources and the ownership that follows from them.
//!
//! These names are a contract with every other program that manages the same cluster: not a byte may differ.

use super::family::Family;

/// The maximum length of a name without the suffix of the family: Azure's 80 less the 5 of `-IPv6`.
const MAX_WITHOUT_SUFFIX: usize = 75;

/// Azure's maximum length of names, for load balancers' parts and similar resources.
pub(crate) const MAX_LENGTH: usize = 80;

/// The suffix of names that belong to the second family of a dual-stack Service.
const IPV6_SUFFIX: &str = "-IPv6";

/// The suffix of names of IPv4 if IPv6, which was the Service's only family before, keeps the name without a suffix.
const IPV4_SUFFIX: &str = "-IPv4";

/// The probe that all Services with traffic policy Cluster share in shared mode.
pub(crate) const SHARED_PROBE: &str = "cluster-service-shared-health-probe";

/// The prefix of the names of everything that a Service owns: `a` and the UID without dashes, cut to 32 characters.
/// `None` for an object without a UID of an API server.
pub fn base_name(uid: &str) -> Option<String> {
    let mut name: String = std::iter::once('a').chain(uid.chars().filter(|c| *c != '-')).collect();
    cut(&mut name, 32);
    (name.len() > 1).then_some(name)
}

/// Whether a text is a [base name](base_name) as the UIDs of API servers make it: `a` and 31 hexadecimal digits.
pub(crate) fn is_base_name(text: &str) -> bool {
    let digits = text.strip_prefix(['a', 'A']);
    digits.is_some_and(|digits| digits.len() == 31 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The prefix of the names of a Service's public IPs. Only the names of public IP prefixes and families follow.
pub(crate) fn public_ip_prefix(cluster: &str, base: &str) -> String {
    let mut name = format!("{cluster}-{base}");
    cut(&mut name, MAX_WITHOUT_SUFFIX);
    name
}

/// How a Service's names differ by family and subnet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Naming<'a> {
    pub base: &'a str,
    /// The subnet annotation of an internal Service.
    pub subnet: Option<&'a str>,
    pub dual_stack: bool,
}

impl Naming<'_> {
    fn for_family(&self, mut name: String, family: Family) -> String {
        if self.dual_stack && family == Family::V6 {
            name.push_str(IPV6_SUFFIX);
        }
        name
    }

    /// The name of a family's frontend.
    pub fn frontend(&self, family: Family) -> String {
        let Some(subnet) = self.subnet else { return self.for_family(self.base.to_owned(), family) };
        let mut name = format!("{}-{subnet}", self.base);
        if name.len() > MAX_WITHOUT_SUFFIX {
            cut(&mut name, MAX_WITHOUT_SUFFIX);
            // Azure requires a letter, a digit or `_` at the end; other programs replace digits as well.
            if name.ends_with(|c: char| !c.is_alphabetic() && c != '_') {
                name.pop();
                name.push('_');
            }
        }
        self.for_family(name, family)
    }

    /// The possible names of a family's frontend or public IP, derived from its first name. The name depends on the
    /// Service's other families at creation, and those change while the address is kept.
    pub fn of_family(&self, name: String, family: Family) -> [String; 2] {
        let (bare, suffix) = match family {
            Family::V4 => (name.strip_suffix(IPV4_SUFFIX).unwrap_or(&name), IPV4_SUFFIX),
            Family::V6 => (name.strip_suffix(IPV6_SUFFIX).unwrap_or(&name), IPV6_SUFFIX),
        };
        let (bare, suffixed) = (bare.to_owned(), format!("{bare}{suffix}"));
        if name == bare { [bare, suffixed] } else { [suffixed, bare] }
    }

    /// The name of the rule (and the probe) of a port; `protocol` in capitals.
    pub fn rule(&self, protocol: &str, port: i32, family: Family) -> String {
        let plain = format!("{}-{protocol}-{port}", self.base);
        let Some(subnet) = self.subnet else { return self.for_family(plain, family) };
        let mut segment = subnet.to_owned();
        cut(&mut segment, MAX_WITHOUT_SUFFIX.saturating_sub(plain.len() + 1));
        self.for_family(format!("{}-{segment}-{protocol}-{port}", self.base), family)
    }

    /// The name of a family's public IP; `prefix` is the name of its public IP prefix.
    pub fn public_ip(&self, cluster: &str, prefix: Option<&str>, family: Family) -> String {
        let mut name = format!("{cluster}-{}", self.base);
        if let Some(prefix) = prefix {
            name.push('-');
            name.push_str(prefix);
        }
        cut(&mut name, MAX_WITHOUT_SUFFIX);
        self.for_family(name, family)
    }
}

/// The base name in the name of a frontend or a rule, if it was made from the UID of a Service: `a` and the first 31
/// hexadecimal digits.
pub(crate) fn base_of(name: &str) -> Option<&str> {
    name.split('-').next().filter(|base| base.starts_with('a') && is_base_name(base))
}

/// Whether a frontend is named after the Service with this base name. The comparison is case-sensitive.
///
/// Only a dash may follow the base name: the names of every release have this form, and otherwise a shorter base name
/// would also own the frontends of a longer one.
pub(crate) fn is_frontend_of(name: &str, base: &str) -> bool {
    name.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Whether a rule or probe is named after the Service with this base name, in any case.
pub(crate) fn is_rule_of(name: &str, base: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.len() >= base.len()
        && bytes[..base.len()].eq_ignore_ascii_case(base.as_bytes())
        && bytes.get(base.len()).is_none_or(|next| *next == b'-')
}

/// The family that the suffix of a frontend's or pool's name stands for.
pub(crate) fn family_of_name(name: &str) -> Family {
    let bytes = name.as_bytes();
    let suffixed = bytes.len() >= IPV6_SUFFIX.len()
        && bytes[bytes.len() - IPV6_SUFFIX.len()..].eq_ignore_ascii_case(IPV6_SUFFIX.as_bytes());
    if suffixed { Family::V6 } else { Family::V4 }
}

/// A name with a suffix, cut before the suffix to fit Azure's 80 characters.
pub(crate) fn with_suffix(name: &str, suffix: &str) -> String {
    let mut name = name.to_owned();
    cut(&mut name, MAX_LENGTH.saturating_sub(suffix.len()));
    name + suffix
}

/// Cuts a name to at most `length` bytes, at a character boundary.
fn cut(name: &mut String, length: usize) {
    name.truncate(name.floor_char_boundary(length));
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "257b9655-5137-4ad2-b091-ef3f07043ad3";
    const BASE: &str = "a257b965551374ad2b091ef3f07043ad";

    fn naming<'a>(subnet: Option<&'a str>, dual_stack: bool) -> Naming<'a> {
        Naming { base: BASE, subnet, dual_stack }
    }

    /// LB-001.
    #[test]
    fn lb_001_the_base_name_is_32_characters_of_the_uid() {
        assert_eq!(base_name(UID).as_deref(), Some(BASE));
        assert_eq!(base_name("test1").as_deref(), Some("atest1"));
        assert_eq!(base_name(""), None);
        assert_eq!(base_name("--"), None);
    }

    /// LB-002.
    #[test]
    fn lb_002_frontends_carry_the_subnet_of_internal_services() {
        let single = naming(Some("shortsubnet"), false);
        assert_eq!(single.frontend(Family::V4), format!("{BASE}-shortsubnet"));
        let dual = naming(Some("shortsubnet"), true);
        assert_eq!(dual.frontend(Family::V6), format!("{BASE}-shortsubnet-IPv6"));
        assert_eq!(naming(None, false).frontend(Family::V4), BASE);
    }

    /// LB-003.
    #[test]
    fn lb_003_a_cut_frontend_ends_in_an_underscore_where_a_letter_is_missing() {
        for last in ["1", "-"] {
            let subnet = format!("{}{last}tail", "s".repeat(41));
            let name = naming(Some(&subnet), true).frontend(Family::V4);
            assert_eq!(name.len(), 75);
            assert_eq!(name, format!("{BASE}-{}_", "s".repeat(41)));
            let v6 = naming(Some(&subnet), true).frontend(Family::V6);
            assert_eq!(v6, format!("{name}-IPv6"));
            assert_eq!(v6.len(), 80);
        }
    }

    /// LB-004.
    #[test]
    fn lb_004_a_cut_frontend_keeps_a_letter_or_underscore() {
        for last in ["x", "_"] {
            let subnet = format!("{}{last}tail", "1".repeat(41));
            let name = naming(Some(&subnet), false).frontend(Family::V4);
            assert_eq!(name, format!("{BASE}-{}{last}", "1".repeat(41)));
        }
        let fits = format!("{}1", "s".repeat(41));
        assert_eq!(naming(Some(&fits), false).frontend(Family::V4), format!("{BASE}-{fits}"), "not cut");
    }

    /// LB-006.
    #[test]
    fn lb_006_rules_cut_the_subnet_and_keep_protocol_and_port() {
        let subnet = "averylonnnngggnnnnnnnnnnnnnnnnnnnnnngggggggggggggggggggggggggggg";
        assert_eq!(naming(None, false).rule("TCP", 9000, Family::V4), format!("{BASE}-TCP-9000"));
        let expected = format!("{BASE}-averylonnnngggnnnnnnnnnnnnnnnnnnn-TCP-9000");
        assert_eq!(expected.len(), 75);
        assert_eq!(naming(Some(subnet), false).rule("TCP", 9000, Family::V4), expected);
        assert_eq!(naming(Some(subnet), true).rule("TCP", 9000, Family::V6), format!("{expected}-IPv6"));
    }

    #[test]
    fn only_dual_stack_names_tell_the_family() {
        assert_eq!(naming(None, false).frontend(Family::V6), BASE);
        assert_eq!(naming(None, false).rule("UDP", 53, Family::V6), format!("{BASE}-UDP-53"));
        assert_eq!(naming(None, false).public_ip("k", None, Family::V6), format!("k-{BASE}"));
        assert_eq!(naming(None, true).frontend(Family::V4), BASE);
        assert_eq!(naming(None, true).frontend(Family::V6), format!("{BASE}-IPv6"));
        assert_eq!(naming(None, true).rule("UDP", 53, Family::V6), format!("{BASE}-UDP-53-IPv6"));
    }

    /// LB-009, LB-010.
    #[test]
    fn lb_009_lb_010_public_ips_are_named_after_cluster_service_and_prefix() {
        let naming = Naming { base: "auid", subnet: None, dual_stack: true };
        assert_eq!(naming.public_ip("azure", Some("prefix-id"), Family::V4), "azure-auid-prefix-id");
        assert_eq!(naming.public_ip("azure", None, Family::V4), "azure-auid");
        assert_eq!(naming.public_ip("azure", None, Family::V6), "azure-auid-IPv6");
        let long = naming.public_ip(&"c".repeat(90), None, Family::V6);
        assert_eq!(long, format!("{}-IPv6", "c".repeat(75)));
    }

    #[test]
    fn a_name_is_cut_at_a_character_boundary() {
        for (name, length, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "abc"),
            ("aéé", 4, "aé"),
            ("aéé", 3, "aé"),
            ("a€", 3, "a"),
            ("€", 2, ""),
        ] {
            let mut cut_name = name.to_owned();
            cut(&mut cut_name, length);
            assert_eq!(cut_name, expected, "{name} {length}");
        }
    }

    #[test]
    fn ownership_ends_at_a_dash() {
        assert!(is_frontend_of("atest1", "atest1"));
        assert!(is_frontend_of("atest1-subnet-IPv6", "atest1"));
        assert!(!is_frontend_of("atest10", "atest1"));
        assert!(!is_frontend_of("ATEST1", "atest1"));
        assert!(is_rule_of("ATEST1-TCP-80", "atest1"));
        assert!(!is_rule_of("atest10-TCP-80", "atest1"));
        assert!(!is_rule_of("at", "atest1"));
    }
}
