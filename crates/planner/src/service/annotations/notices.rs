//! Annotations whose key or value has no effect, or another effect than their author may expect. The Service's owner is
//! informed; the Service itself is not affected.

use std::cmp::Reverse;

use k8s::names::SERVICE_ANNOTATION_PREFIX;
use k8s::{Notice, ObjectKey, Service};

use super::Annotations;
use super::table::Format::{self, Flag, Pairs, TrimmedFlag, Word};
use super::table::Support::{Ignored, OfBasic, OfPrivateLink, OfSeveral};
use super::table::{KNOWN, KNOWN_OF_PORTS};
use crate::model::Cluster;
use crate::model::annotation_keys::{self as keys, full_key};

/// One notice for each annotation of a Service that has no effect.
pub(crate) fn notices(service: &Service, cluster: &Cluster) -> Vec<Notice> {
    let config = &cluster.config;
    let is_served = |key: &str| {
        let is = |known: &str| key.eq_ignore_ascii_case(&full_key(known));
        cluster.has_several_load_balancers() && is(keys::CONFIGURATIONS)
            || config.uses_basic_load_balancer() && is(keys::MODE)
    };
    let annotations = service.metadata.annotations.iter().flatten().filter(|(key, _)| !is_served(key));
    annotations.filter_map(|(key, value)| judge(service, key, value)).collect()
}

fn warn(service: ObjectKey, reason: &'static str, message: String) -> Option<Notice> {
    Some(Notice { service, warning: true, reason, message })
}

fn judge(service: &Service, full: &str, value: &str) -> Option<Notice> {
    let Some(key) = full.strip_prefix(SERVICE_ANNOTATION_PREFIX) else {
        // One of Azure's annotation names behind an unknown prefix.
        let (_, name) = full.rsplit_once('/')?;
        let meant = name.starts_with(OURS) && KNOWN.iter().any(|known| known.key == name);
        return meant.then(|| unknown(service, full, &full_key(name))).flatten();
    };
    if let Some(known) = KNOWN.iter().find(|known| known.key == key) {
        let ignored = |why: &str, remedy: &str| {
            let message = format!("annotation {full} is ignored: {why}; {remedy}");
            warn(service.key(), "AnnotationIgnored", message)
        };
        if let Ignored(why) | OfSeveral(why) | OfBasic(why) = known.support {
            return ignored(why, "remove it");
        }
        if known.support == OfPrivateLink && !Annotations(service).trimmed_flag(keys::PLS_CREATE) {
            let remedy = format!("set annotation {} to true, or remove it", full_key(keys::PLS_CREATE));
            return ignored("the Service asks for no private link service", &remedy);
        }
        return misread(service, full, value, known.format);
    }
    if let Some((port, suffix)) = key.strip_prefix("port_").and_then(|rest| rest.split_once('_')) {
        return judge_port(service, full, value, port, suffix);
    }
    let (nearest, likeness) = nearest(key, KNOWN.iter().map(|known| known.key))?;
    // Other clouds use the same prefix; their annotations are not known here.
    (likeness >= NEAR || key.to_ascii_lowercase().starts_with(OURS))
        .then(|| unknown(service, full, &full_key(nearest)))
        .flatten()
}

/// The minimum similarity, in hundredths, at which a name without `azure-` counts as a misspelling of a known name.
/// `aws-load-balancer-internal` has 84.
const NEAR: usize = 90;

/// The prefix of most known names.
const OURS: &str = "azure-";

fn judge_port(service: &Service, full: &str, value: &str, port: &str, suffix: &str) -> Option<Notice> {
    let Some(known) = KNOWN_OF_PORTS.iter().find(|known| known.key == suffix) else {
        let (nearest, _) = nearest(suffix, KNOWN_OF_PORTS.iter().map(|known| known.key))?;
        return unknown(service, full, &full_key(&format!("port_{port}_{nearest}")));
    };
    let spec = &service.spec;
    let mut ports = spec.ports.iter().map(|port| port.port).chain([spec.health_check_node_port]);
    if port.parse().is_ok_and(|number: i32| number > 0 && ports.any(|port| port == number)) {
        return misread(service, full, value, known.format);
    }
    let ports: Vec<String> = spec.ports.iter().map(|port| port.port.to_string()).collect();
    warn(
        service.key(),
        "UnknownAnnotation",
        format!(
            "annotation {full} has no effect: the Service has no port {port}, its ports are {}",
            ports.join(", ")
        ),
    )
}

fn unknown(service: &Service, full: &str, meant: &str) -> Option<Notice> {
    warn(
        service.key(),
        "UnknownAnnotation",
        format!("annotation {full} is not known and has no effect: did you mean {meant}?"),
    )
}

/// The notice for a value that is read differently from what its author may expect.
fn misread(service: &Service, full: &str, value: &str, format: Format) -> Option<Notice> {
    let is_flag = |value: &str| ["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word));
    let problem = match format {
        Flag(otherwise) if !is_flag(value) => {
            format!(
                "`{value}` is neither true nor false and counts as false: {otherwise}; write true or false"
            )
        }
        TrimmedFlag(otherwise) if !is_flag(value.trim()) => {
            format!(
                "`{value}` is neither true nor false and counts as false: {otherwise}; write true or false"
            )
        }
        Word(words) if !words.iter().any(|word| value.trim().eq_ignore_ascii_case(word)) => {
            let first = words.first().copied().unwrap_or_default();
            format!(
                "`{value}` is not one of {} and counts as {first}; correct or remove it",
                words.join(", ")
            )
        }
        Pairs => {
            let left_out: Vec<&str> = value
                .split(',')
                .map(str::trim)
                .filter(|piece| !piece.is_empty() && piece.matches('=').count() != 1)
                .collect();
            if left_out.is_empty() {
                return None;
            }
            format!(
                "`{}` is not one key=value pair and is left out; correct or remove it",
                left_out.join(", ")
            )
        }
        _ => return None,
    };
    warn(service.key(), "AnnotationValueIgnored", format!("annotation {full}: {problem}"))
}

/// The known word that is most similar to a word, and the similarity of the two.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<(&'a str, usize)> {
    let word = word.to_ascii_lowercase();
    known.map(|known| (known, likeness(&word, known))).min_by_key(|(_, likeness)| Reverse(*likeness))
}

/// The share of pairs of neighbouring letters that two words have in common, in hundredths (Dice's coefficient). It
/// finds words with a wrong letter as well as words with a missing part.
fn likeness(one: &str, other: &str) -> usize {
    let pairs = |word: &str| word.chars().zip(word.chars().skip(1)).collect::<Vec<_>>();
    let (of_one, mut of_other) = (pairs(one), pairs(other));
    let all = of_one.len() + of_other.len();
    let mut common = 0_usize;
    for pair in of_one {
        if let Some(at) = of_other.iter().position(|other| *other == pair) {
            of_other.swap_remove(at);
            common += 1;
        }
    }
    (200 * common).checked_div(all).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::tests::svc;
    use crate::service::annotations::table::Support;

    fn notices(service: &Service) -> Vec<Notice> {
        super::notices(service, &crate::order::tests::cluster())
    }

    fn told(key: &str, value: &str) -> Option<(&'static str, String)> {
        let service = svc("test1").tcp(80).annotate(key, value);
        let mut notices = notices(&service.0);
        assert!(notices.len() <= 1, "{notices:?}");
        notices.pop().map(|notice| {
            assert!(notice.warning && notice.message.contains(key), "{notice:?}");
            (notice.reason, notice.message)
        })
    }

    #[test]
    fn a_value_that_is_no_flag_is_told_with_what_follows() {
        for value in ["yes", "1", " true", "", "internal"] {
            let (reason, message) = told("azure-load-balancer-internal", value).unwrap();
            assert_eq!(reason, "AnnotationValueIgnored");
            assert!(message.contains(&format!("`{value}`")) && message.contains("a public one"), "{message}");
            assert!(message.ends_with("write true or false"), "{message}");
        }
        for value in ["true", "True", "FALSE"] {
            assert_eq!(told("azure-load-balancer-internal", value), None);
        }
        assert_eq!(told("azure-pls-create", " false "), None);
        assert!(told("azure-pls-create", "yes").is_some());
        assert!(told("port_80_no_lb_rule", "yes").is_some());
    }

    #[test]
    fn a_misspelt_annotation_names_the_nearest_known_one() {
        for (misspelt, meant) in [
            ("azure-load-balancer-internl", "azure-load-balancer-internal"),
            ("Azure-Load-Balancer-Internal", "azure-load-balancer-internal"),
            ("azure-load-balancer-interna", "azure-load-balancer-internal"),
            ("azure-internal-subnet", "azure-load-balancer-internal-subnet"),
            ("azure-load-balancer-ip", "azure-load-balancer-ipv4"),
            ("azure-pip-names", "azure-pip-name"),
            ("load-balancer-source-range", "load-balancer-source-ranges"),
            ("port_80_health-probe_ports", "port_80_health-probe_port"),
            ("port_80_no-lb-rule", "port_80_no_lb_rule"),
        ] {
            let (reason, message) = told(misspelt, "true").unwrap();
            assert_eq!(reason, "UnknownAnnotation");
            assert!(
                message.ends_with(&format!("did you mean service.beta.kubernetes.io/{meant}?")),
                "{misspelt}: {message}"
            );
        }
        let elsewhere = svc("test1").change(|s| {
            let annotations = s.metadata.annotations.get_or_insert_default();
            annotations.insert("service.kubernetes.io/azure-load-balancer-internal".into(), "true".into());
        });
        assert!(notices(&elsewhere.0)[0].message.contains("did you mean service.beta.kubernetes.io/azure-"));
    }

    #[test]
    fn annotations_of_other_clouds_and_of_people_are_none_of_our_business() {
        for key in
            ["aws-load-balancer-type", "aws-load-balancer-internal", "do-loadbalancer-name", "linode-x"]
        {
            assert_eq!(told(key, "true"), None, "{key}");
        }
        let own = svc("test1").change(|s| {
            let annotations = s.metadata.annotations.get_or_insert_default();
            annotations.insert("example.com/azure-owner".into(), "me".into());
            annotations.insert("note".into(), "me".into());
        });
        assert_eq!(notices(&own.0), []);
    }

    #[test]
    fn what_this_release_does_not_serve_is_told() {
        for key in ["azure-load-balancer-mode", "azure-load-balancer-configurations", "azure-pls-name"] {
            let (reason, message) = told(key, "x").unwrap();
            assert_eq!(reason, "AnnotationIgnored");
            assert!(message.contains("is ignored: ") && message.ends_with("remove it"), "{message}");
        }
        let link = svc("test1").tcp(80).internal().annotate("azure-pls-create", "true");
        assert_eq!(notices(&link.annotate("azure-pls-name", "x").0), [], "there it is served");
    }

    #[test]
    fn ports_words_and_pairs_are_read_as_they_are_documented() {
        let (_, message) = told("port_81_health-probe_port", "80").unwrap();
        assert!(message.contains("no port 81, its ports are 80"), "{message}");
        let (_, message) = told("port_80_health-probe_protocol", "grpc").unwrap();
        assert!(message.contains("`grpc` is not one of tcp, http, https and counts as tcp"), "{message}");
        assert_eq!(told("azure-load-balancer-health-probe-protocol", " HTTP "), None);
        let (_, message) = told("azure-pip-ip-tags", "a=b,c=d=e,f").unwrap();
        assert!(message.contains("`c=d=e, f`"), "{message}");
        assert_eq!(told("azure-pip-tags", "a=b, c=d,"), None);
        let local = svc("test1").tcp(80).local(30123).annotate("port_30123_health-probe_interval", "6");
        assert_eq!(notices(&local.0), [], "the health check's port is one, too");
    }

    #[test]
    fn no_known_annotation_is_listed_twice_or_taken_for_another() {
        for (index, known) in KNOWN.iter().enumerate() {
            let key = known.key;
            assert!(!KNOWN[..index].iter().any(|other| other.key == key), "{key}");
            let value = match known.format {
                Flag(_) | TrimmedFlag(_) => "false",
                Word(words) => words[0],
                Pairs => "a=b",
                Format::Text(_) => "x",
            };
            assert_eq!(told(key, value).is_some(), known.support != Support::Served, "{key}");
        }
    }

    #[test]
    fn likeness_is_the_share_of_common_pairs() {
        for (one, other, expected) in
            [("", "", 0), ("a", "a", 0), ("ab", "ab", 100), ("night", "nacht", 25), ("aab", "ab", 66)]
        {
            assert_eq!(likeness(one, other), expected, "{one} {other}");
        }
    }
}
