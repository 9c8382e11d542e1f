//! Azure may store what it is sent in another spelling. That must not count as a difference.

use std::net::IpAddr;

use azure_types::{SecurityGroup, SecurityRuleProperties};
use ipnet::IpNet;
use proptest::prelude::*;
use serde_json::json;

use super::{absent, after, present, run, told, world};
use crate::order::tests::properties::cases;
use crate::order::tests::{Svc, security_group, svc};
use crate::outcome::Change;
use crate::resources::security_group::plan::SecurityGroupPlan;

/// How an Azure spells what it stores.
#[derive(Debug, Clone)]
pub(super) struct Spelling {
    /// Single addresses with or without their length; `None` for unchanged.
    length: Option<bool>,
    /// IPv6 with all its digits.
    long_v6: bool,
    /// Service tags and words; `None` for unchanged.
    upper_case: Option<bool>,
    /// Lists in the opposite order.
    reversed: bool,
    /// Lists of one item in the plural or the singular member; `None` for unchanged.
    plural: Option<bool>,
    /// Neighbouring ports as one range.
    merged_ports: bool,
}

pub(super) fn spelling() -> impl Strategy<Value = Spelling> {
    let optional = || prop::option::of(any::<bool>());
    (optional(), any::<bool>(), optional(), any::<bool>(), optional(), any::<bool>()).prop_map(
        |(length, long_v6, upper_case, reversed, plural, merged_ports)| Spelling {
            length,
            long_v6,
            upper_case,
            reversed,
            plural,
            merged_ports,
        },
    )
}

impl Spelling {
    fn address(&self, address: IpAddr) -> String {
        match address {
            IpAddr::V6(v6) if self.long_v6 => v6.segments().map(|segment| format!("{segment:04X}")).join(":"),
            other => other.to_string(),
        }
    }

    fn cased(&self, word: &str) -> String {
        match self.upper_case {
            None => word.to_owned(),
            Some(true) => word.to_uppercase(),
            Some(false) => word.to_lowercase(),
        }
    }

    fn prefix(&self, prefix: &str) -> String {
        let parsed = prefix.parse::<IpAddr>().map(IpNet::from).or_else(|_| prefix.parse::<IpNet>());
        let Ok(network) = parsed else { return self.cased(prefix) };
        let address = self.address(network.addr());
        let single = network.prefix_len() == network.max_prefix_len();
        if single && !self.length.unwrap_or_else(|| prefix.contains('/')) {
            return address;
        }
        format!("{address}/{}", network.prefix_len())
    }

    fn list(
        &self,
        single: &mut Option<String>,
        plural: &mut Option<Vec<String>>,
        spell: impl Fn(&str) -> String,
    ) {
        let was_plural = single.is_none();
        let mut all: Vec<String> =
            single.take().into_iter().chain(plural.take().into_iter().flatten()).map(|i| spell(&i)).collect();
        if self.reversed {
            all.reverse();
        }
        // Only one of the two may be sent, and only addresses and ports may be in lists.
        if all.len() == 1 && !self.plural.unwrap_or(was_plural) {
            *single = all.pop();
        }
        *plural = Some(all);
    }

    fn ports(&self, list: &mut Option<Vec<String>>) {
        let Some(ports) = list.as_mut().filter(|_| self.merged_ports) else { return };
        if let (Some(first), Some(second)) =
            (ports.iter().position(|port| port == "80"), ports.iter().position(|port| port == "81"))
        {
            ports.remove(first.max(second));
            ports[first.min(second)] = "80-81".to_owned();
        }
    }

    fn rule(&self, p: &mut SecurityRuleProperties) {
        let prefix = |text: &str| self.prefix(text);
        self.list(&mut p.source_address_prefix, &mut p.source_address_prefixes, prefix);
        self.list(&mut p.destination_address_prefix, &mut p.destination_address_prefixes, prefix);
        self.ports(&mut p.destination_port_ranges);
        self.list(&mut p.destination_port_range, &mut p.destination_port_ranges, str::to_owned);
        self.list(&mut p.source_port_range, &mut p.source_port_ranges, str::to_owned);
        for word in [&mut p.protocol, &mut p.access, &mut p.direction] {
            *word = word.as_ref().map(|word| self.cased(word.as_str()).as_str().into());
        }
    }

    /// The group as this Azure stores it.
    pub(super) fn store(&self, mut group: SecurityGroup) -> SecurityGroup {
        for rule in group.properties.iter_mut().flat_map(|p| p.security_rules.iter_mut().flatten()) {
            self.rule(rule.properties.as_mut().unwrap());
        }
        group
    }
}

/// Networks without host bits, many of them of one address, spelled as owners may spell them.
fn range() -> impl Strategy<Value = String> {
    let v4 = (any::<u32>(), prop::sample::select(vec![32, 32, 31, 24, 9, 0]));
    let v6 = (any::<u128>(), prop::sample::select(vec![128, 128, 127, 64, 32, 0]), any::<bool>());
    let v4 = v4.prop_map(|(bits, length)| {
        IpNet::new(IpAddr::from(bits.to_be_bytes()), length).unwrap().trunc().to_string()
    });
    let v6 = v6.prop_map(|(bits, length, upper)| {
        let text = IpNet::new(IpAddr::from(bits.to_be_bytes()), length).unwrap().trunc().to_string();
        if upper { text.to_uppercase() } else { text }
    });
    prop_oneof![v4, v6]
}

pub(super) fn service() -> impl Strategy<Value = Svc> {
    let port = (prop::sample::select(vec!["TCP", "UDP"]), prop::sample::select(vec![80, 81, 443]));
    let tags = prop::sample::subsequence(vec!["AzureCloud", "azurecloud", "Storage.WestUS"], 0..3);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (prop::collection::btree_set(port, 1..4), prop::collection::vec(range(), 0..5), tags, flags).prop_map(
        |(ports, ranges, tags, (deny, internal, at_nodes))| {
            let ranges: Vec<&str> = ranges.iter().map(String::as_str).collect();
            let mut service = svc("s").dual().ranges(&ranges);
            for (protocol, port) in ports {
                service = service.port(protocol, port);
            }
            if !tags.is_empty() {
                service = service.annotate("azure-allowed-service-tags", &tags.join(","));
            }
            for (wanted, key) in [
                (deny, "azure-deny-all-except-load-balancer-source-ranges"),
                (internal, "azure-load-balancer-internal"),
                (at_nodes, "azure-disable-load-balancer-floating-ip"),
            ] {
                if wanted {
                    service = service.annotate(key, "true");
                }
            }
            service
        },
    )
}

fn named(service: &Svc, name: &str, addresses: &[&str]) -> Svc {
    let named = service.clone().change(|s| {
        s.metadata.name = Some(name.to_owned());
        s.metadata.uid = Some(name.to_owned());
    });
    named.published(addresses)
}

fn changes(planned: &SecurityGroupPlan) -> Vec<Change> {
    planned.step.iter().flat_map(|step| step.changes.clone()).collect()
}

proptest! {
    #![proptest_config(cases(256))]

    /// Whatever Azure's spelling, a second pass writes nothing, for all Services together and for each alone, and
    /// nothing remains of Services that leave.
    #[test]
    fn no_spelling_of_azure_is_a_difference(
        first in service(),
        second in service(),
        shares_address in any::<bool>(),
        spelling in spelling(),
    ) {
        let of_a = ["20.0.0.1", "2001:db8::1"];
        let of_b = if shares_address { of_a } else { ["20.0.0.2", "2001:db8::2"] };
        let (a, b) = (named(&first, "a1", &of_a), named(&second, "b1", &of_b));
        let batch = [present(&a, &of_a), present(&b, &of_b)];
        let usage = world(&[&a, &b]);

        let empty = security_group(json!([]));
        let planned = run(&empty, &batch, &usage);
        prop_assert_eq!(&planned.refused, &[]);
        let group = spelling.store(after(&empty, &planned));
        for batch in [&batch[..], &batch[..1], &batch[1..]] {
            prop_assert_eq!(changes(&run(&group, batch, &usage)), Vec::<Change>::new());
        }

        let (gone, left) = (a.clone().deleting(), world(&[&b]));
        let planned = run(&group, &[absent(&gone, &of_a)], &left);
        let group = spelling.store(after(&group, &planned));
        let alone = run(&empty, &batch[1..], &left);
        let names = |group: &SecurityGroup| {
            let mut names: Vec<String> =
                told(group).iter().map(|rule| rule.split(' ').nth(1).unwrap().to_owned()).collect();
            names.sort();
            names
        };
        prop_assert_eq!(names(&group), names(&after(&empty, &alone)), "as if it had always been alone");
        prop_assert_eq!(changes(&run(&group, &batch[1..], &left)), Vec::<Change>::new());

        let planned = run(&group, &[absent(&b.deleting(), &of_b)], &world(&[]));
        prop_assert_eq!(told(&after(&group, &planned)), Vec::<String>::new());
    }
}

#[test]
fn a_range_of_one_address_is_stored_with_or_without_its_length() {
    let service = svc("test1").tcp(80).ranges(&["203.0.113.7/32"]);
    let intent = [present(&service, &["20.0.0.1"])];
    let empty = security_group(json!([]));
    let sent = after(&empty, &run(&empty, &intent, &world(&[&service])));
    // The MD5 of `Tcp_203.0.113.7/32_80`: names hash the normalised range.
    assert_eq!(
        told(&sent),
        [
            "500 k8s-azure-lb_allow_IPv4_1b6c40b87eca82449617bb19fb69c3b3 Allow Tcp 203.0.113.7/32 -> 20.0.0.1 80"
        ]
    );
    for length in [None, Some(true), Some(false)] {
        let plain = Spelling {
            length,
            long_v6: false,
            upper_case: None,
            reversed: false,
            plural: None,
            merged_ports: false,
        };
        assert_eq!(run(&plain.store(sent.clone()), &intent, &world(&[&service])).step, None, "{length:?}");
    }
}

/// A rule for the remaining ports has the name that its Service will look for, although Azure spells the source
/// differently.
#[test]
fn a_split_rule_is_named_as_its_service_names_it() {
    let a = svc("a1").tcp(80).tcp(443).ranges(&["203.0.113.7/32"]).published(&["20.0.0.1"]);
    let b = svc("b1").tcp(443).ranges(&["203.0.113.7/32"]).published(&["20.0.0.1"]);
    let empty = security_group(json!([]));
    let both = after(&empty, &run(&empty, &[present(&a, &["20.0.0.1"])], &world(&[&a, &b])));
    let bare = Spelling {
        length: Some(false),
        long_v6: false,
        upper_case: None,
        reversed: false,
        plural: None,
        merged_ports: false,
    };
    let stored = bare.store(both);
    let left = after(&stored, &run(&stored, &[absent(&a.deleting(), &["20.0.0.1"])], &world(&[&b])));
    assert_eq!(run(&bare.store(left), &[present(&b, &["20.0.0.1"])], &world(&[&b])).step, None);
}
