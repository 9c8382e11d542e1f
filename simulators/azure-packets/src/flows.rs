//! Many flows at once: how they spread over nodes, and which of them break when something changes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::fate::{Fate, fate};
use super::first_packet::{Packet, Source};
use super::health::Probed;
use super::network::Network;
use super::probe_answers::ProbeAnswers;
use super::protocol::Protocol;
use super::verdict::Verdict;
use super::what_if::{Change, Silenced, changed_network};
use azure_engine::document::reading::Documents;

/// Most flows of one question: enough that the shares of hundreds of machines mean something.
pub const MAX_FLOWS: usize = 20_000;

/// Most broken flows that an answer lists one by one: enough for a reader.
const MAX_EXAMPLES: usize = 10;

/// The flows of a question, and the changes meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowPlan {
    /// The destination address.
    pub to: IpAddr,
    /// The destination port.
    pub port: u16,
    /// The transport protocol.
    #[serde(default = "tcp")]
    pub protocol: Protocol,
    /// The sender of all of them; by default clients on the internet.
    #[serde(default)]
    pub from: Option<Source>,
    /// How many flows, at most [`MAX_FLOWS`].
    #[serde(default = "some_flows", deserialize_with = "few")]
    pub flows: usize,
    /// How many clients on the internet they come from, at most [`MAX_FLOWS`].
    #[serde(default = "some_clients", deserialize_with = "few")]
    pub clients: usize,
    /// Chooses addresses and ports of the clients.
    #[serde(default)]
    pub seed: u64,
    /// The changes once the flows are established. Without changes the report only has the spread.
    #[serde(default)]
    pub changes: Vec<Change>,
}

fn tcp() -> Protocol {
    Protocol::Tcp
}

/// Reads a count up to [`MAX_FLOWS`].
fn few<'de, D: Deserializer<'de>>(input: D) -> Result<usize, D::Error> {
    let number = usize::deserialize(input)?;
    if number > MAX_FLOWS {
        return Err(D::Error::custom(format_args!("{number} are too many: {MAX_FLOWS} can be looked at")));
    }
    Ok(number)
}

fn some_flows() -> usize {
    1_000
}

fn some_clients() -> usize {
    250
}

/// The spread of flows, and their fates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowReport {
    /// Number of flows.
    pub flows: usize,
    /// Established flows.
    pub established: usize,
    /// Why the others did not, with their number, most frequent first.
    pub refused: Vec<Reason>,
    /// The nodes, by name. Flows that leave this Azure or end at no machine are under an empty name.
    pub nodes: Vec<NodeFlows>,
    /// The fates of the established flows; `None` without changes.
    pub change: Option<FlowChange>,
    sentence: String,
}

/// The flows of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NodeFlows {
    /// Its name.
    pub node: String,
    /// Flows established with it before the change.
    pub before: usize,
    /// Those of them that go on with it.
    pub kept: usize,
    /// Flows that moved to it in mid-stream.
    pub gained: usize,
    /// Where the same flows would go if they began after the change.
    pub new: usize,
}

/// The fates of established flows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FlowChange {
    /// They go on as they were.
    pub kept: usize,
    /// They go on with another node.
    pub moved: usize,
    /// They ended.
    pub broken: usize,
    /// Why, most frequent first.
    pub reasons: Vec<Reason>,
    /// Flows that continue, although a new one of their client would reach another node.
    pub next_elsewhere: usize,
    /// How many of the same flows could begin after the change.
    pub accepted: usize,
    /// Why the others could not, most frequent first.
    pub refused: Vec<Reason>,
    /// Some of those that broke or moved.
    pub examples: Vec<FlowFate>,
}

/// A reason and how many flows it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// In plain words.
    pub why: String,
    /// How many flows.
    pub flows: usize,
}

/// The fate of one flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowFate {
    /// Its first packet.
    pub packet: Packet,
    /// The node that it was established with.
    pub node: String,
    /// Its fate.
    #[serde(flatten)]
    pub fate: Fate,
}

impl FlowPlan {
    /// TCP flows of clients on the internet to an address and port.
    pub fn new(to: IpAddr, port: u16) -> Self {
        Self {
            to,
            port,
            protocol: Protocol::Tcp,
            from: None,
            flows: some_flows(),
            clients: some_clients(),
            seed: 0,
            changes: Vec::new(),
        }
    }

    /// With another protocol.
    #[must_use]
    pub fn over(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// With a change once they are established.
    #[must_use]
    pub fn with_change(mut self, change: Change) -> Self {
        self.changes.push(change);
        self
    }

    /// The first packets of all flows; no two are of the same flow.
    pub fn packets(&self) -> Vec<Packet> {
        let mut draw = Draw(self.seed ^ 0x9e37_79b9_7f4a_7c15);
        let clients: Vec<IpAddr> =
            (0..self.clients.clamp(1, MAX_FLOWS)).map(|number| client(self.to, number, &mut draw)).collect();
        let wanted = self.flows.min(MAX_FLOWS);
        let mut seen = BTreeSet::new();
        let mut packets = Vec::with_capacity(wanted);
        // One client has so many ports and no more.
        for number in 0..wanted.saturating_mul(4) {
            if packets.len() == wanted {
                break;
            }
            let client = clients.get(number % clients.len()).copied().unwrap_or(self.to);
            let source_port = 49_152 + (draw.next() % 16_384) as u16;
            let fresh = match &self.from {
                Some(_) => seen.insert((self.to, source_port)),
                None => seen.insert((client, source_port)),
            };
            if fresh {
                let from = self.from.clone().unwrap_or(Source::Internet { address: client });
                packets
                    .push(Packet::new(from, self.to, self.port, self.protocol).with_source_port(source_port));
            }
        }
        packets
    }
}

/// A host on the internet: the networks that are set aside for documentation.
fn client(to: IpAddr, number: usize, draw: &mut Draw) -> IpAddr {
    const NETWORKS: [[u8; 3]; 3] = [[192, 0, 2], [198, 51, 100], [203, 0, 113]];
    if to.is_ipv6() {
        let host = (number as u128) << 64 | u128::from(draw.next());
        return Ipv6Addr::from(0x2001_0db8_u128 << 96 | host).into();
    }
    // Each client has an address of its own, as long as there are any.
    let [a, b, c] = NETWORKS.get(number % NETWORKS.len()).copied().unwrap_or_default();
    let host = (number / NETWORKS.len()) % 254 + 1;
    Ipv4Addr::new(a, b, c, u8::try_from(host).unwrap_or(1)).into()
}

/// SplitMix64: small, and the same everywhere.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Follows many flows through the present simulated network, and through the network with the plan's changes.
pub fn flows(documents: &dyn Documents, probes: &dyn ProbeAnswers, plan: &FlowPlan) -> FlowReport {
    if plan.changes.is_empty() {
        return Network::read(documents).flows(probes, plan);
    }
    let (mut before, mut after) = (Network::default(), Network::default());
    documents.at_once(&mut |documents| {
        before = Network::read(documents);
        after = changed_network(documents, &plan.changes);
    });
    let silenced = Silenced::new(&after, probes, &plan.changes);
    before.flows_after(probes, &after, &silenced, plan)
}

impl Network {
    /// How flows spread.
    pub fn flows(&self, probes: &dyn ProbeAnswers, plan: &FlowPlan) -> FlowReport {
        let probed = Probed::default();
        let mut tally = Tally::default();
        for packet in plan.packets() {
            tally.begin(&self.trace_as_probed(probes, &probed, &packet));
        }
        tally.report(plan, false)
    }

    /// The fates of flows when the network `after`, with its probes, replaces this one.
    pub fn flows_after(
        &self,
        probes: &dyn ProbeAnswers,
        after: &Network,
        probes_after: &dyn ProbeAnswers,
        plan: &FlowPlan,
    ) -> FlowReport {
        let (probed, probed_after) = (Probed::default(), Probed::default());
        let mut tally = Tally::default();
        for packet in plan.packets() {
            let before = self.trace_as_probed(probes, &probed, &packet);
            let then = after.trace_as_probed(probes_after, &probed_after, &packet);
            tally.begin(&before);
            tally.go_on(&before, &then, after);
        }
        tally.report(plan, true)
    }
}

fn node(verdict: &Verdict) -> String {
    verdict.node().unwrap_or_default().to_owned()
}

/// Flows, counted one after the other.
#[derive(Default)]
struct Tally {
    flows: usize,
    established: usize,
    refused: BTreeMap<String, usize>,
    nodes: BTreeMap<String, NodeFlows>,
    change: FlowChange,
    broken: BTreeMap<String, usize>,
    refused_then: BTreeMap<String, usize>,
}

impl Tally {
    /// A flow begins.
    fn begin(&mut self, verdict: &Verdict) {
        self.flows += 1;
        match &verdict.refusal {
            Some(refusal) => *self.refused.entry(refusal.to_string()).or_default() += 1,
            None => {
                self.established += 1;
                self.nodes.entry(node(verdict)).or_default().before += 1;
            }
        }
    }

    /// The change has come; `after` is the verdict on the same flow, were it to begin now.
    fn go_on(&mut self, before: &Verdict, after: &Verdict, network: &Network) {
        match &after.refusal {
            Some(refusal) => *self.refused_then.entry(refusal.to_string()).or_default() += 1,
            None => {
                self.change.accepted += 1;
                self.nodes.entry(node(after)).or_default().new += 1;
            }
        }
        let Some(fate) = fate(before, after, network) else { return };
        let was = node(before);
        match &fate {
            Fate::Keeps => {
                self.change.kept += 1;
                self.change.next_elsewhere += usize::from(after.arrives && node(after) != was);
                self.nodes.entry(was).or_default().kept += 1;
                return;
            }
            Fate::Moves { to } => {
                self.change.moved += 1;
                self.nodes.entry(to.clone()).or_default().gained += 1;
            }
            Fate::Breaks { why } => {
                self.change.broken += 1;
                *self.broken.entry(why.clone()).or_default() += 1;
            }
        }
        if self.change.examples.len() < MAX_EXAMPLES {
            self.change.examples.push(FlowFate { packet: before.packet.clone(), node: was, fate });
        }
    }

    fn report(self, plan: &FlowPlan, changed: bool) -> FlowReport {
        let (reasons, refused_then) = (most_frequent(self.broken), most_frequent(self.refused_then));
        let change = FlowChange { reasons, refused: refused_then, ..self.change };
        let change = Some(change).filter(|_| changed);
        let nodes: Vec<NodeFlows> =
            self.nodes.into_iter().map(|(name, flows)| NodeFlows { node: name, ..flows }).collect();
        let (flows, established, refused) = (self.flows, self.established, most_frequent(self.refused));
        let sentence = sentence(plan, flows, established, &refused, &nodes, change.as_ref());
        FlowReport { flows, established, refused, nodes, change, sentence }
    }
}

fn most_frequent(counts: BTreeMap<String, usize>) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = counts.into_iter().map(|(why, flows)| Reason { why, flows }).collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.flows));
    reasons
}

impl FlowReport {
    /// What happened, in plain words.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }
}

fn sentence(
    plan: &FlowPlan,
    flows: usize,
    established: usize,
    refused: &[Reason],
    nodes: &[NodeFlows],
    change: Option<&FlowChange>,
) -> String {
    let to = std::net::SocketAddr::new(plan.to, plan.port);
    let per_node = |count: fn(&NodeFlows) -> usize| {
        let words: Vec<String> = nodes
            .iter()
            .filter(|flows| count(flows) > 0)
            .map(|flows| {
                let name = if flows.node.is_empty() { "elsewhere" } else { &flows.node };
                format!("{name} {}", count(flows))
            })
            .collect();
        match words.as_slice() {
            [] => "none".to_owned(),
            words => words.join(", "),
        }
    };
    let because = |reasons: &[Reason]| match reasons.first() {
        Some(first) => format!(" (mostly because {})", first.why),
        None => String::new(),
    };
    let mut text = format!(
        "Of {flows} {} flows to {to} {established} arrive: {}.",
        plan.protocol,
        per_node(|n| n.before)
    );
    if established < flows {
        text.push_str(&format!(" {} do not{}.", flows - established, because(refused)));
    }
    if let Some(change) = change {
        text.push_str(&format!(
            " After the change {} of them go on as they were, {} move to another node, {} break{}.",
            change.kept,
            change.moved,
            change.broken,
            because(&change.reasons)
        ));
        text.push_str(&format!(" New flows: {}.", per_node(|n| n.new)));
        if change.accepted < flows {
            text.push_str(&format!(
                " {} new flows are refused{}.",
                flows - change.accepted,
                because(&change.refused)
            ));
        }
    }
    text
}
