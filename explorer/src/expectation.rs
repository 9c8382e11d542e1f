//! The expected result for a Service, as in an entry of the corpus.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::clients::Clients;
use crate::rule::{IpFamily, Rule};

/// The expected result for a Service.
#[derive(Debug, Clone, PartialEq)]
pub enum Expectation {
    /// It has addresses, and traffic arrives.
    Served(Box<Served>),
    /// An event with all of these texts tells its owner why it is not served.
    Refused {
        /// The texts of the event.
        texts: Vec<String>,
        /// Whether Azure refuses it: then something may have been created before. Otherwise nothing is.
        by_azure: bool,
    },
    /// Its current state is refused, and it keeps what it had before.
    KeptAsItWas,
    /// It is not ours: nothing happens to it.
    Untouched,
    /// It was ours: nothing of it remains.
    Released,
}

/// The expected state of a served Service.
#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    /// Whether its frontends are private.
    pub internal: bool,
    /// The families of its addresses.
    pub families: Vec<IpFamily>,
    /// All of its rules.
    pub rules: Vec<Rule>,
    /// The allowed clients of its IPv4 address and of its IPv6 address.
    pub from: [Clients; 2],
    /// The addresses in its status: each an address, or a range that contains it. Empty if only families count.
    pub addresses: Vec<String>,
    /// Texts that a Warning event must contain, `Reason: text`. Any other warning is a mistake.
    pub warnings: Vec<String>,
    /// Whether other warnings are allowed, because there were many failures before.
    pub after_trouble: bool,
    /// Members that its public IP must contain.
    pub public_ip: Value,
    /// Accepted writes by resource type; other types must not be written.
    pub writes: Writes,
}

/// Accepted writes by resource type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Writes {
    /// Public IPs.
    #[serde(default, rename = "public IP")]
    pub public_ip: usize,
    /// Load balancers.
    #[serde(default, rename = "load balancer")]
    pub load_balancer: usize,
    /// The security group.
    #[serde(default, rename = "security group")]
    pub security_group: usize,
}

/// An expectation in its file format.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Written {
    /// `external IPv4`, `internal IPv6 IPv4` and the like.
    served: Option<String>,
    refused: Option<Texts>,
    #[serde(rename = "refused by Azure")]
    refused_by_azure: Option<Texts>,
    untouched: bool,
    released: bool,
    rules: Vec<String>,
    from: Option<Vec<String>>,
    addresses: Vec<String>,
    warnings: Vec<String>,
    #[serde(rename = "public IP")]
    public_ip: Value,
    writes: Option<Writes>,
}

/// One text or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Written {
    /// Adds the defaults of its kind.
    pub(crate) fn complete(self) -> Result<Expectation, String> {
        let mut all = Vec::new();
        if let Some(at) = &self.served {
            all.push(Expectation::Served(Box::new(self.served(at)?)));
        }
        for (texts, by_azure) in [(self.refused, false), (self.refused_by_azure, true)] {
            let texts = texts.map(|texts| match texts {
                Texts::One(text) => vec![text],
                Texts::Several(texts) => texts,
            });
            all.extend(texts.map(|texts| Expectation::Refused { texts, by_azure }));
        }
        all.extend(self.untouched.then_some(Expectation::Untouched));
        all.extend(self.released.then_some(Expectation::Released));
        match <[Expectation; 1]>::try_from(all) {
            Ok([one]) => Ok(one),
            Err(_) => {
                Err("an expectation has one of `served`, `refused`, `refused by Azure`, `untouched` and \
                           `released`"
                    .to_owned())
            }
        }
    }

    fn served(&self, at: &str) -> Result<Served, String> {
        let mut words = at.split_whitespace();
        let internal = match words.next() {
            Some("external") => false,
            Some("internal") => true,
            other => return Err(format!("`served: {}`: external or internal?", other.unwrap_or_default())),
        };
        let families: Option<Vec<IpFamily>> = words.map(IpFamily::parse).collect();
        let families = families.filter(|families| !families.is_empty());
        let families = families.ok_or_else(|| format!("`served: {at}`: IPv4, IPv6 or both?"))?;
        let mut rules = Vec::new();
        for line in &self.rules {
            rules.extend(Rule::parse(line, &families)?);
        }
        rules.sort_by_key(ToString::to_string);
        let from = match &self.from {
            Some(words) => Clients::parse(words.iter().map(String::as_str))?,
            None => Clients { anyone: !internal, network: internal, ..Clients::default() },
        };
        let writes = self.writes.clone().unwrap_or_else(|| Writes {
            public_ip: if internal { 0 } else { families.len() },
            load_balancer: 1,
            // Inside the network no rule is needed.
            security_group: usize::from(!internal),
        });
        Ok(Served {
            internal,
            rules,
            from: [from.clone(), from],
            addresses: self.addresses.clone(),
            warnings: self.warnings.clone(),
            after_trouble: false,
            public_ip: self.public_ip.clone(),
            writes,
            families,
        })
    }
}

/// How the replaced program serves an entry differently.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// Its behaviour, and why it is not adopted here.
    pub differs: String,
    /// The clusters in which it does so, by a word of their description; by default all.
    #[serde(rename = "in", default)]
    pub clusters: Option<String>,
}

/// The header of an entry.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Header {
    /// The bug because of which it fails today.
    pub known: Option<String>,
    /// Why the replaced program does not serve it, or serves it differently.
    pub upstream: Option<Upstream>,
    /// Names of resources that may stay changed after its Services are deleted.
    #[serde(rename = "stays changed")]
    pub stays_changed: Vec<String>,
    /// By `namespace/name`.
    pub expect: BTreeMap<String, Written>,
    /// Consecutive changes, each with its expected results.
    pub then: Vec<Then>,
}

/// A change and its expected results.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Then {
    /// Merge patches by `namespace/name`.
    pub change: BTreeMap<String, Value>,
    /// Services that are deleted, as `namespace/name`.
    pub delete: Vec<String>,
    /// By `namespace/name`; other Services are as before.
    pub expect: BTreeMap<String, Written>,
}
