//! A minimal etcd: its members and leader, over gRPC, as far as Cluster API's control plane provider asks for them
//! (`etcdserverpb`: Status, Alarm, MemberList, MemberRemove, MoveLeader). There is no data, and there are no alarms.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Response;
use futures::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use http_body_util::StreamBody;
use parking_lot::Mutex;
use prost::Message;

use super::hash::hash;

/// The version that Status reports.
const VERSION: &str = "3.6.4";
const PEERS: u16 = 2380;
/// The port for clients.
pub(super) const CLIENTS: u16 = 2379;
/// The bytes before each message of gRPC: whether it is compressed, and its length.
const PREFIX: usize = 5;
/// The maximum length of a request.
const MAX_REQUEST: usize = 4096;

/// The members of a cluster's etcd, by their ids.
#[derive(Debug, Clone, Default)]
pub(super) struct Etcd {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    members: BTreeMap<u64, String>,
    leader: u64,
    /// Counts elections.
    term: u64,
}

/// The addresses of running members, by the names of their nodes.
pub(super) type Running = BTreeMap<String, Option<IpAddr>>;

impl Etcd {
    /// Adds a node's member.
    pub(super) fn join(&self, node: &str) {
        self.state.lock().members.insert(hash(node), node.to_owned());
    }

    /// The server of a member's client port; `running` returns the members that run at the time of a request.
    pub(super) fn router(
        &self,
        node: &str,
        running: impl Fn() -> Running + Clone + Send + Sync + 'static,
    ) -> Router {
        let (state, own) = (Arc::clone(&self.state), hash(node));
        Router::new().fallback(move |request: Request| {
            let (state, running) = (Arc::clone(&state), running.clone());
            async move {
                let path = request.uri().path().to_owned();
                let read = axum::body::to_bytes(request.into_body(), MAX_REQUEST).await.unwrap_or_default();
                let asked = read.get(PREFIX..).unwrap_or_default();
                respond(state.lock().answer(own, &running(), &path, asked))
            }
        })
    }
}

/// A failed request: gRPC's code, and etcd's message.
type Failure = (u8, &'static str);

const NOT_FOUND: Failure = (5, "etcdserver: member not found");
const NOT_LEADER: Failure = (9, "etcdserver: not leader");
const UNKNOWN: Failure = (12, "unknown service or method: it is not played");
const MALFORMED: Failure = (3, "the request cannot be decoded");

impl State {
    /// Elects a leader if the previous one no longer runs.
    fn settle(&mut self, running: &Running) {
        let runs = |id: &u64| self.members.get(id).is_some_and(|name| running.contains_key(name));
        if !runs(&self.leader)
            && let Some(next) = self.members.keys().find(|id| runs(id)).copied()
        {
            (self.leader, self.term) = (next, self.term + 1);
        }
    }

    fn answer(&mut self, own: u64, running: &Running, path: &str, asked: &[u8]) -> Result<Vec<u8>, Failure> {
        self.settle(running);
        let cluster_id = self.members.keys().fold(1, |sum: u64, id| sum.wrapping_mul(31).wrapping_add(*id));
        let header = Some(Header { cluster_id, member_id: own, revision: 1, raft_term: self.term });
        match path {
            "/etcdserverpb.Maintenance/Status" => {
                let (version, leader, raft_term) = (VERSION.to_owned(), self.leader, self.term);
                Ok(StatusResponse { header, version, db_size: 4096, leader, raft_index: 1, raft_term }
                    .encode_to_vec())
            }
            "/etcdserverpb.Maintenance/Alarm" | "/etcdserverpb.Maintenance/Defragment" => {
                Ok(HeaderResponse { header }.encode_to_vec())
            }
            "/etcdserverpb.Cluster/MemberList" => {
                Ok(MembersResponse { header, members: self.list(running) }.encode_to_vec())
            }
            "/etcdserverpb.Cluster/MemberRemove" => {
                let id = IdRequest::decode(asked).map_err(|_| MALFORMED)?.id;
                self.members.remove(&id).ok_or(NOT_FOUND)?;
                self.settle(running);
                Ok(MembersResponse { header, members: self.list(running) }.encode_to_vec())
            }
            "/etcdserverpb.Maintenance/MoveLeader" => {
                let id = IdRequest::decode(asked).map_err(|_| MALFORMED)?.id;
                if self.leader != own {
                    return Err(NOT_LEADER);
                }
                self.members.get(&id).filter(|name| running.contains_key(*name)).ok_or(NOT_FOUND)?;
                (self.leader, self.term) = (id, self.term + 1);
                Ok(HeaderResponse { header }.encode_to_vec())
            }
            _ => Err(UNKNOWN),
        }
    }

    fn list(&self, running: &Running) -> Vec<Member> {
        let url = |name: &String, port: u16| -> Vec<String> {
            let address = running.get(name).copied().flatten();
            address
                .map(|address| format!("https://{}", std::net::SocketAddr::new(address, port)))
                .into_iter()
                .collect()
        };
        let member = |(id, name): (&u64, &String)| Member {
            id: *id,
            name: name.clone(),
            peer_urls: url(name, PEERS),
            client_urls: url(name, CLIENTS),
            is_learner: false,
        };
        self.members.iter().map(member).collect()
    }
}

fn respond(answer: Result<Vec<u8>, Failure>) -> Response {
    let (message, code, words) = match answer {
        Ok(message) => (Some(message), 0, ""),
        Err((code, words)) => (None, code, words),
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(u16::from(code)));
    if !words.is_empty() {
        trailers.insert("grpc-message", HeaderValue::from_static(words));
    }
    let data = message.map(|message| {
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
        http_body::Frame::data(Bytes::from([&[0], length.as_slice(), &message].concat()))
    });
    let frames =
        data.into_iter().chain([http_body::Frame::trailers(trailers)]).map(Ok::<_, std::convert::Infallible>);
    let mut response = Response::new(Body::new(StreamBody::new(stream::iter(frames.collect::<Vec<_>>()))));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

#[derive(Clone, PartialEq, Message)]
struct Header {
    #[prost(uint64, tag = "1")]
    cluster_id: u64,
    #[prost(uint64, tag = "2")]
    member_id: u64,
    #[prost(int64, tag = "3")]
    revision: i64,
    #[prost(uint64, tag = "4")]
    raft_term: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Member {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, repeated, tag = "3")]
    peer_urls: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    client_urls: Vec<String>,
    #[prost(bool, tag = "5")]
    is_learner: bool,
}

#[derive(Clone, PartialEq, Message)]
struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(string, tag = "2")]
    version: String,
    #[prost(int64, tag = "3")]
    db_size: i64,
    #[prost(uint64, tag = "4")]
    leader: u64,
    #[prost(uint64, tag = "5")]
    raft_index: u64,
    #[prost(uint64, tag = "6")]
    raft_term: u64,
}

/// Responses with a header alone: to MoveLeader, and to Alarm without alarms.
#[derive(Clone, PartialEq, Message)]
struct HeaderResponse {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
}

/// The answers to MemberList and MemberRemove.
#[derive(Clone, PartialEq, Message)]
struct MembersResponse {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(message, repeated, tag = "2")]
    members: Vec<Member>,
}

/// MemberRemoveRequest and MoveLeaderRequest: a member.
#[derive(Clone, PartialEq, Message)]
struct IdRequest {
    #[prost(uint64, tag = "1")]
    id: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> (Etcd, Running) {
        let (etcd, mut running) = (Etcd::default(), Running::new());
        for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
            etcd.join(name);
            running.insert(name.to_owned(), Some(IpAddr::from([10, 0, 0, u8::try_from(at).unwrap()])));
        }
        (etcd, running)
    }

    fn ask(etcd: &Etcd, running: &Running, node: &str, method: &str, id: u64) -> Result<Vec<u8>, Failure> {
        let request = IdRequest { id }.encode_to_vec();
        etcd.state.lock().answer(hash(node), running, &format!("/etcdserverpb.{method}"), &request)
    }

    fn leader(etcd: &Etcd, running: &Running, node: &str) -> u64 {
        let answer = ask(etcd, running, node, "Maintenance/Status", 0).unwrap();
        StatusResponse::decode(answer.as_slice()).unwrap().leader
    }

    #[test]
    fn members_are_listed_and_removed() {
        let (etcd, mut running) = three();
        running.insert("b".to_owned(), None);
        let answer = ask(&etcd, &running, "a", "Cluster/MemberList", 0).unwrap();
        let members = MembersResponse::decode(answer.as_slice()).unwrap().members;
        let of = |name: &str| members.iter().find(|member| member.name == name).unwrap();
        assert_eq!(of("a").peer_urls, ["https://10.0.0.0:2380"]);
        assert_eq!(of("b").client_urls, Vec::<String>::new());
        let answer = ask(&etcd, &running, "a", "Cluster/MemberRemove", hash("c")).unwrap();
        assert_eq!(MembersResponse::decode(answer.as_slice()).unwrap().members.len(), 2);
        assert_eq!(ask(&etcd, &running, "a", "Cluster/MemberRemove", hash("c")), Err(NOT_FOUND));
        assert_eq!(ask(&etcd, &running, "a", "KV/Range", 0), Err(UNKNOWN));
    }

    #[test]
    fn the_leader_moves_and_is_followed_by_another() {
        let (etcd, mut running) = three();
        let first = leader(&etcd, &running, "a");
        let name = etcd.state.lock().members[&first].clone();
        let other = ["a", "b", "c"].into_iter().find(|other| *other != name).unwrap();
        assert_eq!(ask(&etcd, &running, other, "Maintenance/MoveLeader", hash(other)), Err(NOT_LEADER));
        ask(&etcd, &running, &name, "Maintenance/MoveLeader", hash(other)).unwrap();
        assert_eq!(leader(&etcd, &running, "a"), hash(other));
        running.remove(other);
        assert_ne!(leader(&etcd, &running, &name), hash(other));
        assert_eq!(ask(&etcd, &running, &name, "Maintenance/MoveLeader", hash(other)).unwrap_err().0 % 4, 1);
    }
}
