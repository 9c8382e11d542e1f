//! The private link service that a Service asks for: its annotations, read once.

use std::net::{IpAddr, Ipv4Addr};

use k8s::Service;

use super::annotations::Annotations;
use super::mistakes::Mistakes;
use super::owner::{ServiceRemoval, group};
use crate::model::annotation_keys::{self as keys, full_key};
use crate::model::limits::{MAX_ADDRESSES, MIN_ADDRESSES};
use crate::model::{Cluster, Family, Flavor};
use crate::outcome::{PrivateLinkRefusal, Refusal};

/// The annotations with settings of the private link service itself: only the Service that created it may have them.
const SETTINGS: &[&str] = &[
    keys::PLS_NAME,
    keys::PLS_SUBNET,
    keys::PLS_ADDRESS_COUNT,
    keys::PLS_ADDRESSES,
    keys::PLS_FQDNS,
    keys::PLS_PROXY_PROTOCOL,
    keys::PLS_VISIBILITY,
    keys::PLS_AUTO_APPROVAL,
];

/// The private link service that a Service asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateLinkIntent {
    /// The requested name.
    pub name: Option<String>,
    /// The resource group that it is created in.
    pub group: String,
    /// The subnet of its addresses, by name.
    pub subnet: String,
    /// How many addresses it has.
    pub count: usize,
    /// The static addresses, without duplicates; the first is the primary one.
    pub addresses: Vec<Ipv4Addr>,
    /// The names under which it is offered.
    pub fqdns: Vec<String>,
    /// Whether each connection begins with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// The subscriptions that may see it.
    pub visibility: Vec<String>,
    /// The subscriptions whose connections need no approval.
    pub auto_approval: Vec<String>,
    /// An annotation with a setting of the private link service itself, if any.
    pub(crate) own_setting: Option<String>,
}

fn is_created(annotations: Annotations<'_>) -> bool {
    annotations.trimmed_flag(keys::PLS_CREATE)
}

/// Whether all packets, including health probes, start with a PROXY protocol header.
pub(crate) fn is_created_with_proxy_protocol(service: &Service) -> bool {
    let annotations = Annotations(service);
    is_created(annotations) && annotations.trimmed_flag(keys::PLS_PROXY_PROTOCOL)
}

/// The items of a space-separated list.
fn words<'a>(annotations: Annotations<'a>, key: &str) -> impl Iterator<Item = &'a str> {
    annotations.get(key).unwrap_or_default().split_whitespace()
}

/// The names in a space-separated list. A comma is refused, as neither subscriptions nor domains contain one: Azure
/// would refuse `a,b` as one name.
fn names(annotations: Annotations<'_>, key: &'static str) -> Result<Vec<String>, Refusal> {
    let name = |item: &str| match item.contains([',', ';']) {
        true => Err(PrivateLinkRefusal::ListInAnItem { key: full_key(key), item: item.to_owned() }.into()),
        false => Ok(item.to_owned()),
    };
    words(annotations, key).map(name).collect()
}

impl PrivateLinkIntent {
    /// Reads the private link service that a Service asks for; `None` if it asks for none.
    pub(crate) fn read(
        cluster: &Cluster,
        service: &Service,
        owner: &ServiceRemoval,
    ) -> Result<Option<Self>, Refusal> {
        let annotations = Annotations(service);
        if !is_created(annotations) {
            return Ok(None);
        }
        let mut mistakes = Mistakes::default();
        if owner.flavor == Flavor::External && !annotations.flag(keys::DISABLE_FLOATING_IP) {
            mistakes.note(PrivateLinkRefusal::FloatsOutside.into());
        }
        if !owner.families.contains(&Family::V4) {
            mistakes.note(PrivateLinkRefusal::NoIpv4.into());
        }
        let count = mistakes.read_or(annotations.integer(keys::PLS_ADDRESS_COUNT), None);
        let count = count.unwrap_or(MIN_ADDRESSES);
        let addresses = mistakes.read_or(chosen_addresses(annotations), Vec::new());
        if !(MIN_ADDRESSES..=MAX_ADDRESSES).contains(&count) {
            mistakes.note(PrivateLinkRefusal::CountOutOfRange { count }.into());
        } else if addresses.len() > usize::try_from(count).unwrap_or_default() {
            let count = usize::try_from(count).unwrap_or_default();
            mistakes.note(PrivateLinkRefusal::TooManyAddresses { count, addresses: addresses.len() }.into());
        }
        let mut list = |key| mistakes.read_or(names(annotations, key), Vec::new());
        let [visibility, fqdns, auto_approval] =
            [keys::PLS_VISIBILITY, keys::PLS_FQDNS, keys::PLS_AUTO_APPROVAL].map(&mut list);
        let is_for_all = visibility.iter().any(|subscription| subscription == "*");
        let not_blank = |key| annotations.get(key).filter(|value| !value.trim().is_empty());
        let of_frontend = || not_blank(keys::INTERNAL_SUBNET).filter(|_| owner.flavor.is_internal());
        let subnet = not_blank(keys::PLS_SUBNET).or_else(of_frontend).unwrap_or(&cluster.config.subnet_name);
        let has_key = |key: &&&str| annotations.get(key).is_some();
        mistakes.or(Some(Self {
            name: annotations.trimmed(keys::PLS_NAME).map(str::to_owned),
            group: group(cluster, service).to_owned(),
            subnet: subnet.to_owned(),
            count: usize::try_from(count).unwrap_or_default(),
            addresses,
            fqdns,
            proxy_protocol: annotations.trimmed_flag(keys::PLS_PROXY_PROTOCOL),
            visibility: if is_for_all { vec!["*".to_owned()] } else { visibility },
            auto_approval,
            own_setting: SETTINGS.iter().find(has_key).map(|key| full_key(key)),
        }))
    }
}

fn chosen_addresses(annotations: Annotations<'_>) -> Result<Vec<Ipv4Addr>, Refusal> {
    let mut addresses = Vec::new();
    for item in words(annotations, keys::PLS_ADDRESSES) {
        match item.parse::<IpAddr>().map(|address| address.to_canonical()) {
            Ok(IpAddr::V4(address)) if addresses.contains(&address) => {}
            Ok(IpAddr::V4(address)) => addresses.push(address),
            Ok(IpAddr::V6(_)) => {
                return Err(PrivateLinkRefusal::AddressOfIpv6 { value: item.to_owned() }.into());
            }
            Err(_) => return Err(PrivateLinkRefusal::InvalidAddress { value: item.to_owned() }.into()),
        }
    }
    Ok(addresses)
}
