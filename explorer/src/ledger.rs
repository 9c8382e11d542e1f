//! The authors of everything in Azure.
//!
//! A ledger observes every write of every cluster and compares the document before it with the document after it,
//! member by member. So it knows the author of each member without asking the programs, and detects writes that change
//! or remove another author's.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use azure_simulator::Azure;
use azure_types::ResourceId;
use parking_lot::Mutex;
use serde_json::Value;
use testkit::types::{INSTANCES, INTERFACES, MACHINES, PUBLIC_IPS, SCALE_SETS, SECURITY_GROUPS};
use testkit::{Call, Reply, Shape, Tap};

use flatten::flatten;

pub(crate) mod flatten;

/// The author of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hand {
    /// Azure itself: defaults, and what follows from other resources.
    Azure,
    /// It existed from the beginning.
    Beginning,
    /// It is a machine of this cluster, or of its scale sets.
    Machines(usize),
    /// The controllers of this cluster.
    Cluster(usize),
    /// A third party.
    Others,
}

impl fmt::Display for Hand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Azure => f.write_str("Azure"),
            Self::Beginning => f.write_str("all"),
            Self::Machines(cluster) => write!(f, "the machines of cluster {cluster}"),
            Self::Cluster(cluster) => write!(f, "cluster {cluster}"),
            Self::Others => f.write_str("a third party"),
        }
    }
}

/// A member of a document, or an item of a list of texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// Its value.
    pub value: Value,
    /// Its author.
    pub hand: Hand,
    /// Whether it was in the request, and is not a default of Azure's.
    pub stated: bool,
}

#[derive(Debug)]
struct Document {
    maker: Hand,
    leaves: BTreeMap<String, Leaf>,
}

#[derive(Debug, Default)]
struct Book {
    documents: BTreeMap<String, Document>,
    breaches: Vec<String>,
    writes: BTreeMap<Hand, u64>,
}

/// The authors of everything in an Azure.
#[derive(Debug)]
pub struct Ledger {
    azure: Azure,
    shapes: Vec<Shape>,
    book: Mutex<Book>,
}

/// Resources whose children have no documents of their own here: writes of a child are writes of these.
const WITH_CHILDREN: [&str; 4] = ["loadbalancers", "networksecuritygroups", "routetables", "virtualnetworks"];

/// The resource whose document contains another.
fn root(id: &ResourceId) -> ResourceId {
    let pairs = id.type_and_name_pairs();
    let has_children = pairs.first().is_some_and(|(kind, _)| WITH_CHILDREN.contains(&&*kind.to_lowercase()));
    match id.parent() {
        Some(parent) if has_children && pairs.len() > 1 => root(&parent),
        _ => id.clone(),
    }
}

impl Ledger {
    /// Opens a ledger: existing resources belong to all clusters, except the machines of these.
    pub fn open(azure: &Azure, shapes: Vec<Shape>) -> Arc<Self> {
        let this = Self { azure: azure.clone(), shapes, book: Mutex::default() };
        let mut book = this.book.lock();
        for document in azure.documents() {
            let Some(id) = document["id"].as_str().and_then(|id| ResourceId::parse(id).ok()) else {
                continue;
            };
            let maker = match this.machines_of(&id, &document) {
                Hand::Azure => Hand::Beginning,
                hand => hand,
            };
            let leaves = flatten(&document);
            let leaf = |(path, value)| (path, Leaf { value, hand: maker, stated: true });
            let leaves = leaves.into_iter().map(leaf).collect();
            book.documents.insert(id.to_lower(), Document { maker, leaves });
        }
        drop(book);
        Arc::new(this)
    }

    /// The cluster of a machine or its scale set; Azure if it is neither.
    fn machines_of(&self, id: &ResourceId, document: &Value) -> Hand {
        let kind = id.resource_type();
        let is_machine =
            [SCALE_SETS, INSTANCES, MACHINES, INTERFACES].iter().any(|one| kind.eq_ignore_ascii_case(one));
        let of = self.shapes.iter().position(|shape| is_machine && shape.has_machine(document));
        of.map_or(Hand::Azure, Hand::Machines)
    }

    /// Records unobserved changes as Azure's.
    fn see(&self, book: &mut Book, id: &ResourceId) {
        let Some(document) = self.azure.document(id) else {
            book.documents.remove(&id.to_lower());
            return;
        };
        let machines = self.machines_of(id, &document);
        let entry = book.documents.entry(id.to_lower());
        let entry = entry.or_insert_with(|| Document { maker: machines, leaves: BTreeMap::new() });
        let hand = if entry.leaves.is_empty() { machines } else { Hand::Azure };
        let now = flatten(&document);
        entry.leaves.retain(|path, _| now.contains_key(path));
        for (path, value) in now {
            let leaf = entry.leaves.entry(path);
            leaf.or_insert_with(|| Leaf { value: Value::Null, hand, stated: false }).value = value;
        }
    }

    /// Records what a write has changed, and whether it changed anything of another author.
    fn wrote(&self, hand: Hand, id: &ResourceId, what: &str, body: Option<&Value>, is_gone: bool) {
        let mut book = self.book.lock();
        *book.writes.entry(hand).or_default() += 1;
        let key = id.to_lower();
        let now = if is_gone { None } else { self.azure.document(id) };
        let now = now.map(|document| flatten(&document)).unwrap_or_default();
        let stated = body.map(flatten).unwrap_or_default();
        let is_new = !book.documents.contains_key(&key);
        let own = match id.resource_type().eq_ignore_ascii_case(SECURITY_GROUPS) {
            true => self.addresses_of(&book, |maker| maker == hand),
            false => Vec::new(),
        };
        let Book { documents, breaches, .. } = &mut *book;
        let document = documents.entry(key.clone());
        let document = document.or_insert_with(|| Document { maker: hand, leaves: BTreeMap::new() });
        let mut breach = |text: String| breaches.push(format!("{hand}'s {what} of {id} {text}"));
        let may_change = |leaves: &BTreeMap<String, Leaf>, path: &str, leaf: &Leaf| {
            may_change(hand, leaf.hand)
                || path.contains(DESTINATIONS) && is_one_of(&own, leaf)
                || is_rule_of(hand, leaves, path, &own)
        };
        // If a whole item was removed, only the item is named.
        let mut removed: Option<&str> = None;
        for (path, leaf) in &document.leaves {
            match now.get(path) {
                // A tag is removed with its resource.
                None if is_gone && path.starts_with("/tags/") => {}
                None if !may_change(&document.leaves, path, leaf) => {
                    let is_named = removed.is_some_and(|item| path[..path.len().min(item.len())] == *item);
                    if !is_named {
                        breach(format!("removed {path} ({}), which {} wrote", leaf.value, leaf.hand));
                        removed = Some(path);
                    }
                }
                Some(value) if *value != leaf.value && !may_change(&document.leaves, path, leaf) => {
                    breach(format!("changed {path} of {} from {} to {value}", leaf.hand, leaf.value));
                }
                _ => {}
            }
        }
        let is_theirs = match document.maker {
            Hand::Cluster(other) | Hand::Machines(other) => {
                matches!(hand, Hand::Cluster(mine) if mine != other)
            }
            // A user's public IP is tagged with the Services that use it.
            Hand::Others => hand != Hand::Others && !id.resource_type().eq_ignore_ascii_case(PUBLIC_IPS),
            Hand::Azure | Hand::Beginning => false,
        };
        let before = std::mem::take(&mut document.leaves);
        for (path, value) in now {
            let leaf = match before.get(&path) {
                Some(leaf) if leaf.value == value => leaf.clone(),
                Some(leaf) if hand == Hand::Others || may_change(&before, &path, leaf) => {
                    Leaf { value, hand, stated: stated.contains_key(&path) }
                }
                Some(leaf) => Leaf { value, ..leaf.clone() },
                None => {
                    if is_theirs && !is_new {
                        breach(format!("added {path} ({value}), though {} made it", document.maker));
                    }
                    let stated = stated.contains_key(&path);
                    // Azure's additions at a third party's write, for example an address, are Azure's.
                    let hand = if hand == Hand::Others && !stated { Hand::Azure } else { hand };
                    Leaf { value, hand, stated }
                }
            };
            document.leaves.insert(path, leaf);
        }
        if document.leaves.is_empty() {
            documents.remove(&key);
        }
    }

    /// Changes a document as a third party. Returns whether Azure accepted it.
    pub fn edit(&self, id: &ResourceId, edit: impl FnOnce(&mut Value)) -> bool {
        self.see(&mut self.book.lock(), id);
        let mut stated = Value::Null;
        let edit = |document: &mut Value| {
            edit(document);
            stated = document.clone();
        };
        let taken = self.azure.edit(id, edit).is_ok();
        if taken {
            self.wrote(Hand::Others, id, "edit", Some(&stated), false);
        }
        taken
    }

    /// Creates a resource as a third party.
    pub fn put(&self, id: &ResourceId, document: Value) {
        self.see(&mut self.book.lock(), id);
        self.azure.put(id, document.clone()).unwrap_or_else(|refusal| panic!("{id}: {refusal:?}"));
        self.wrote(Hand::Others, id, "creation", Some(&document), false);
    }

    /// The writes that changed anything of another author.
    pub fn breaches(&self) -> Vec<String> {
        self.book.lock().breaches.clone()
    }

    /// The number of an author's writes.
    pub fn writes(&self, hand: Hand) -> u64 {
        self.book.lock().writes.get(&hand).copied().unwrap_or_default()
    }

    /// The creator of a resource, by its ID in lower case.
    pub fn maker(&self, id: &str) -> Option<Hand> {
        self.book.lock().documents.get(id).map(|document| document.maker)
    }

    /// Whether a member belongs to a security rule that an author wrote and that by now has only destinations of
    /// others: those that others wrote, and addresses that others have taken over.
    pub fn is_rule_of_others(&self, hand: Hand, id: &str, path: &str) -> bool {
        let book = self.book.lock();
        let Some(document) = book.documents.get(id) else { return false };
        let Some(rest) = path.strip_prefix("/properties/securityRules/") else { return false };
        let rule = rest.split('/').next().unwrap_or(rest);
        let mut all = destinations(&document.leaves, rule).peekable();
        let passed_on = self.addresses_of(&book, |maker| maker != hand && matches!(maker, Hand::Cluster(_)));
        all.peek().is_some() && all.all(|leaf| leaf.hand != hand || is_one_of(&passed_on, leaf))
    }

    /// The public addresses of the frontends of load balancers with these creators.
    fn addresses_of(&self, book: &Book, is_maker: impl Fn(Hand) -> bool) -> Vec<String> {
        let is_theirs = |ip: &&Value| {
            let user = ip["properties"]["ipConfiguration"]["id"].as_str();
            let balancer = user.and_then(|id| ResourceId::parse(id).ok()).and_then(|id| id.parent());
            let balancer = balancer.and_then(|id| book.documents.get(&id.to_lower()));
            balancer.is_some_and(|balancer| is_maker(balancer.maker))
        };
        let all = self.azure.documents_of_type(PUBLIC_IPS);
        let address = |ip: &Value| ip["properties"]["ipAddress"].as_str().map(str::to_owned);
        all.iter().filter(is_theirs).filter_map(address).collect()
    }

    /// Everything that an author wrote: the IDs in lower case, each with its members.
    pub fn by(&self, hand: Hand) -> Vec<(String, String, Leaf)> {
        let mut book = self.book.lock();
        let ids: Vec<ResourceId> =
            book.documents.keys().filter_map(|id| ResourceId::parse(id).ok()).collect();
        for id in ids {
            self.see(&mut book, &id);
        }
        let of = |(id, document): (&String, &Document)| {
            let mine = document.leaves.iter().filter(|(_, leaf)| leaf.hand == hand);
            mine.map(|(path, leaf)| (id.clone(), path.clone(), leaf.clone())).collect::<Vec<_>>()
        };
        book.documents.iter().flat_map(of).collect()
    }
}

fn may_change(hand: Hand, of: Hand) -> bool {
    match (hand, of) {
        (Hand::Others, _) | (_, Hand::Azure) => true,
        (Hand::Cluster(mine), Hand::Cluster(other) | Hand::Machines(other)) => mine == other,
        _ => hand == of,
    }
}

/// Whether a member belongs to a security rule whose destinations are all this author's, or addresses that it has:
/// several clusters open the same ports to the same clients with one rule, to which each adds its addresses.
fn is_rule_of(hand: Hand, leaves: &BTreeMap<String, Leaf>, path: &str, own: &[String]) -> bool {
    let Some(rest) = path.strip_prefix("/properties/securityRules/") else { return false };
    let (name, member) = rest.split_once('/').unwrap_or((rest, ""));
    let mut all = destinations(leaves, name).peekable();
    let is_own = |leaf: &Leaf| may_change(hand, leaf.hand) || is_one_of(own, leaf);
    !member.starts_with(DESTINATIONS) && all.peek().is_some() && all.all(is_own)
}

/// Whether a leaf is one of these addresses.
fn is_one_of(addresses: &[String], leaf: &Leaf) -> bool {
    leaf.value.as_str().is_some_and(|value| addresses.iter().any(|one| one == value))
}

/// The path of a security rule's destinations in it.
const DESTINATIONS: &str = "properties/destinationAddressPrefixes/";

/// The destinations of a security rule.
fn destinations<'a>(leaves: &'a BTreeMap<String, Leaf>, rule: &str) -> impl Iterator<Item = &'a Leaf> {
    let begin = format!("/properties/securityRules/{rule}/{DESTINATIONS}");
    let from = leaves.range(begin.clone()..);
    from.take_while(move |(path, _)| path.starts_with(&begin)).map(|(_, leaf)| leaf)
}

/// A cluster's transport to Azure, recorded by the ledger.
#[derive(Debug)]
pub struct Pen {
    ledger: Arc<Ledger>,
    hand: Hand,
    /// The next tap, which also sees its calls.
    next: Option<Arc<dyn Tap>>,
}

impl Pen {
    /// The transport of a cluster.
    pub fn of(ledger: &Arc<Ledger>, cluster: usize) -> Self {
        Self { ledger: ledger.clone(), hand: Hand::Cluster(cluster), next: None }
    }

    /// The same with another tap before the ledger.
    #[must_use]
    pub fn after(self, next: Arc<dyn Tap>) -> Self {
        Self { next: Some(next), ..self }
    }
}

impl Tap for Pen {
    fn before(&self, call: &Call) -> Option<Reply> {
        if let Some(reply) = self.next.as_ref().and_then(|next| next.before(call)) {
            return Some(reply);
        }
        if let Some(id) = call.resource.as_ref().filter(|_| call.is_write()) {
            self.ledger.see(&mut self.ledger.book.lock(), &root(id));
        }
        None
    }

    fn after(&self, call: &Call, status: u16) {
        if let Some(next) = &self.next {
            next.after(call, status);
        }
        let Some(id) = call.resource.as_ref().filter(|_| call.is_write() && status < 300) else { return };
        let of = root(id);
        let is_gone = call.method == "DELETE" && of == *id;
        let body = (of == *id).then(|| call.document());
        self.ledger.wrote(self.hand, &of, &call.method, body.as_ref(), is_gone);
    }
}
