//! The table of all annotations of Services: the source for checking keys and values, for notices about mistakes, and
//! for `docs/resources/service/annotations.md`.

use super::table::Format::{Flag, Pairs, Text, TrimmedFlag, Word};
use super::table::Support::{Ignored, OfBasic, OfPrivateLink, OfSeveral, Served};
use crate::model::annotation_keys as keys;

/// How a value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// `true` in any case; any other value is false, with this consequence.
    Flag(&'static str),
    /// A flag whose value may have spaces around it.
    TrimmedFlag(&'static str),
    /// One of these words in any case, with or without surrounding spaces; any other value counts as the first word.
    Word(&'static [&'static str]),
    /// `key=value` pairs, separated by commas; other items are ignored.
    Pairs,
    /// Free text, described by these words. Mistakes are refused or reported elsewhere.
    Text(&'static str),
}

/// Whether this release implements the annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Support {
    Served,
    /// Ignored, for this reason.
    Ignored(&'static str),
    /// Implemented where the Service asks for a private link service, and ignored elsewhere.
    OfPrivateLink,
    /// Implemented where several load balancers are configured, and ignored elsewhere, for this reason.
    OfSeveral(&'static str),
    /// Implemented where load balancers are of SKU Basic, and ignored elsewhere, for this reason.
    OfBasic(&'static str),
}

/// One annotation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Annotation {
    /// The key without the common prefix, or the suffix after `port_<number>_`.
    pub key: &'static str,
    pub format: Format,
    pub support: Support,
    /// The behaviour without the annotation; empty where it is ignored.
    #[cfg_attr(not(test), allow(dead_code, reason = "read by the test that makes the page of annotations"))]
    pub default: &'static str,
    /// The effect.
    #[cfg_attr(not(test), allow(dead_code, reason = "read by the test that makes the page of annotations"))]
    pub effect: &'static str,
}

const fn row(key: &'static str, format: Format, default: &'static str, effect: &'static str) -> Annotation {
    Annotation { key, format, support: Served, default, effect }
}

impl Annotation {
    const fn with(self, support: Support) -> Self {
        Self { support, ..self }
    }
}

const OFF: &str = "it stays off";
const PROTOCOLS: &[&str] = &["tcp", "http", "https"];
const ADDRESS: Format = Text("an IP address");
const ID: Format = Text("the id of a public IP prefix");
const NAME: Format = Text("a name");
const NUMBER_FROM_5: Format = Text("seconds, at least 5");
const NUMBER_FROM_2: Format = Text("a number, at least 2");
const RANGES: Format = Text("CIDR ranges, separated by commas");
const WORDS: Format = Text("texts, separated by spaces");
const PATH: Format = Text("a path");

/// The annotations without their common prefix.
pub(super) const KNOWN: &[Annotation] = &[
    row(
        keys::INTERNAL,
        Flag("the load balancer is a public one"),
        "false",
        "a load balancer with a private address",
    ),
    row(
        keys::INTERNAL_SUBNET,
        NAME,
        "`subnetName` of azure.json",
        "the subnet of the private address; read only where the load balancer is internal",
    ),
    row(
        keys::MODE,
        Text("`__auto__` or the name of a set of machines"),
        "the primary set",
        "the availability set or scale set whose load balancer of SKU Basic serves the Service; `__auto__` takes the one \
         with the fewest rules ([SKU Basic](../sku-basic.md))",
    )
    .with(OfBasic(
        "it chooses between load balancers of SKU Basic, and those of SKU Standard serve all machines",
    )),
    row(
        keys::PUBLIC_IP_GROUP,
        Text("the name of a resource group"),
        "the cluster's",
        "the group in which the Service's public IPs are found, created and deleted",
    ),
    row(keys::LOAD_BALANCER_IPV4, ADDRESS, "`spec.loadBalancerIP`", "the frontend's IPv4 address"),
    row(keys::LOAD_BALANCER_IPV6, ADDRESS, "`spec.loadBalancerIP`", "the frontend's IPv6 address"),
    row(
        keys::CONFIGURATIONS,
        Text("names, separated by commas"),
        "all",
        "the load balancers of `multipleStandardLoadBalancerConfigurations` that the Service may be on \
         ([several load balancers](../several-load-balancers.md))",
    )
    .with(OfSeveral(
        "it chooses among the load balancers of multipleStandardLoadBalancerConfigurations, and the cloud \
         configuration has none",
    )),
    row(
        keys::ADDITIONAL_PUBLIC_IPS,
        Text("IP addresses, separated by commas"),
        "none",
        "addresses that reach the Service by other means: its status lists them, and the security group allows their traffic",
    ),
    row(
        keys::PIP_NAME,
        NAME,
        "a public IP of its own",
        "the public IP to use; it has to exist. A Service of IPv6 alone reads it, too",
    ),
    row(keys::PIP_NAME_IPV6, NAME, "a public IP of its own", "the same for IPv6"),
    row(
        keys::PIP_PREFIX,
        ID,
        "none",
        "new public IPs come from this prefix. A Service of IPv6 alone reads it, too",
    ),
    row(keys::PIP_PREFIX_IPV6, ID, "none", "the same for IPv6"),
    row(
        keys::PIP_IP_TAGS,
        Pairs,
        "none",
        "the IP tags of the public IP, such as `RoutingPreference=Internet`",
    ),
    row(keys::PIP_TAGS, Pairs, "none", "tags of the public IP, in addition to those of azure.json"),
    row(
        keys::DNS_LABEL,
        Text("a DNS label, or nothing"),
        "left as it is",
        "the DNS label of the public IP; an empty value removes it",
    ),
    row(
        keys::IDLE_TIMEOUT,
        Text("minutes, 4 to 100"),
        "4",
        "how long an idle flow is kept, for every protocol",
    ),
    row(keys::DISABLE_TCP_RESET, Flag(OFF), "false", "idle TCP flows end without a reset"),
    row(
        keys::HA_PORTS,
        Flag(OFF),
        "false",
        "one rule for all ports and protocols; only on internal load balancers",
    ),
    row(
        keys::DISABLE_FLOATING_IP,
        Flag(OFF),
        "false",
        "packets arrive at the nodes' own addresses and node ports",
    ),
    row(keys::PROBE_PROTOCOL, Word(PROTOCOLS), "the port's `appProtocol`, or tcp", "how health is probed"),
    row(
        keys::PROBE_INTERVAL,
        NUMBER_FROM_5,
        "5",
        "the time between two probes; times their number less than 120 s",
    ),
    row(keys::PROBE_COUNT, NUMBER_FROM_2, "2", "how many probes in a row change a node's state"),
    row(keys::PROBE_PATH, PATH, "`/`", "the path that http and https probes request"),
    row(
        keys::ALLOWED_SERVICE_TAGS,
        Text("Azure's service tags, separated by commas"),
        "none",
        "the allowed clients, in addition to the ranges; without either, all clients",
    ),
    row(
        keys::ALLOWED_IP_RANGES,
        RANGES,
        "all clients",
        "the allowed clients. An invalid range is reported, and all other traffic is then denied",
    ),
    row(keys::SOURCE_RANGES, RANGES, "all clients", "the same, under Kubernetes' own key"),
    row(
        keys::DENY_ALL,
        Flag("nothing is denied"),
        "false",
        "clients outside of the ranges are denied, whatever other security rules allow",
    ),
    row(keys::DISABLE_SECURITY_RULE, Flag(OFF), "false", "no security rules are made for the Service"),
    row("azure-shared-securityrule", Text("anything"), "", "")
        .with(Ignored("it is an annotation of former releases: security rules are always shared")),
    row(
        keys::PLS_CREATE,
        TrimmedFlag("no private link service is made"),
        "false",
        "a private link service in front of the load balancer ([private link](../private-link-service.md))",
    ),
    row(
        keys::PLS_GROUP,
        Text("the name of a resource group"),
        "`privateLinkServiceResourceGroup` of azure.json",
        "where it is",
    )
    .with(OfPrivateLink),
    row(keys::PLS_NAME, NAME, "`pls-` and the frontend's name", "its name, which cannot change")
        .with(OfPrivateLink),
    row(keys::PLS_SUBNET, NAME, "that of the private address", "the subnet of its addresses")
        .with(OfPrivateLink),
    row(keys::PLS_ADDRESS_COUNT, Text("1 to 8"), "1", "how many addresses it has").with(OfPrivateLink),
    row(
        keys::PLS_ADDRESSES,
        Text("IPv4 addresses, separated by spaces"),
        "chosen by Azure",
        "its static addresses; no more than it has",
    )
    .with(OfPrivateLink),
    row(keys::PLS_FQDNS, WORDS, "none", "its domain names").with(OfPrivateLink),
    row(
        keys::PLS_PROXY_PROTOCOL,
        TrimmedFlag(OFF),
        "false",
        "each connection starts with a PROXY protocol header with the client's address, which the pods have to support",
    )
    .with(OfPrivateLink),
    row(keys::PLS_VISIBILITY, WORDS, "none", "the subscriptions that see it; `*` means all")
        .with(OfPrivateLink),
    row(keys::PLS_AUTO_APPROVAL, WORDS, "none", "the subscriptions whose endpoints need no approval")
        .with(OfPrivateLink),
];

/// The suffixes after `port_<number>_`.
pub(super) const KNOWN_OF_PORTS: &[Annotation] = &[
    row(keys::NO_LB_RULE, Flag(OFF), "false", "no rule for the port, and no probe"),
    row(keys::NO_PROBE_RULE, Flag(OFF), "false", "a rule without a probe"),
    row(keys::PORT_PROBE_PROTOCOL, Word(PROTOCOLS), "that of all ports", "how health is probed"),
    row(
        keys::PORT_PROBE_PORT,
        Text("a port of the Service by name or number, or another number to 65535"),
        "the port itself",
        "the port that is probed, at its node port",
    ),
    row(keys::PORT_PROBE_INTERVAL, NUMBER_FROM_5, "that of all ports", "the time between two probes"),
    row(
        keys::PORT_PROBE_COUNT,
        NUMBER_FROM_2,
        "that of all ports",
        "how many probes in a row change a node's state",
    ),
    row(keys::PORT_PROBE_PATH, PATH, "that of all ports", "the path that http and https probes request"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::annotation_keys::full_key;

    fn value(format: Format) -> String {
        match format {
            Flag(_) | TrimmedFlag(_) => "`true` or `false`".to_owned(),
            Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
            Pairs => "`key=value` pairs, separated by commas".to_owned(),
            Text(words) => words.to_owned(),
        }
    }

    fn rows(table: &[Annotation], key: impl Fn(&str) -> String) -> String {
        let served = table.iter().filter(|one| !matches!(one.support, Ignored(_)));
        let line = |one: &Annotation| {
            assert!(!one.effect.is_empty(), "{} has no words", one.key);
            format!("| `{}` | {} | {} | {} |\n", key(one.key), value(one.format), one.default, one.effect)
        };
        served.map(line).collect()
    }

    /// `docs/resources/service/annotations.md` is made from the table: `UPDATE_DOCS=1 cargo test -p planner`.
    #[test]
    fn the_page_of_annotations_is_made_from_the_table() {
        const HEAD: &str = "| annotation | value | without it | what it does |\n|---|---|---|---|\n";
        let mut text = format!(
            "# Annotations of Services\n\n\
             All begin with `{}`. A misspelled key, or a value with another meaning than\n\
             its author may expect, causes a Warning event that names both and the probable intention. A value that cannot be\n\
             served causes one that says what is allowed; the Service then stays unchanged. A [plan](../../plan.md) shows both\n\
             beforehand.\n\n\
             This page is made from the table in `crates/planner/src/service/annotations/table.rs`.\n\n\
             ## Of the Service\n\n{HEAD}{}\n\
             ## Of one port\n\n\
             `<number>` is the port in `spec.ports`, or the health check's node port. These go before the annotations for all ports.\n\n\
             {HEAD}{}\n\
             ## Without effect\n\n| annotation | why |\n|---|---|\n",
            full_key(""),
            rows(KNOWN, str::to_owned),
            rows(KNOWN_OF_PORTS, |key| format!("port_<number>_{key}")),
        );
        for one in KNOWN {
            if let Ignored(why) = one.support {
                text += &format!("| `{}` | {why} |\n", one.key);
            }
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/resources/service/annotations.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
            std::fs::write(path, &text).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(written == text, "{path} is not as the table says: run with UPDATE_DOCS=1");
    }
}
