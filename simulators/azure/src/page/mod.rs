//! The page that shows a simulated Azure while it works, and the endpoints behind it.
//!
//! One HTML file without external resources. It is notified of changes by server-sent events and then reads the
//! topology anew; without events it polls every other second.

mod of_azure;
pub(crate) mod resources;
mod source;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::Stream;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use serde_json::json;
use tokio::sync::watch;

use crate::control_requests::guarded;
use crate::parameters::{self, Parameters};
use azure_packets::view::{SOMEONE, SOMEONE_V6};
use azure_packets::{FlowPlan, Packet, Protocol, Source};

pub use of_azure::AzurePage;
pub use source::PageSource;

/// The path of the page.
pub const PATH: &str = "/_cerulean/";

const PAGE: &str = include_str!("page.html");
/// Everything that the page uses is in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:";
/// Changes come in bursts; a reader is notified at most this often, which still looks immediate.
const EVENT_INTERVAL: Duration = Duration::from_millis(150);
/// The page at [`PATH`] (and at `/`), and `/_cerulean/topology`, `/_cerulean/packet`,
/// `/_cerulean/flows` (POST of a [`FlowPlan`], answered with a [`FlowReport`](azure_packets::FlowReport)) and
/// `/_cerulean/events`.
///
/// A packet is sent by `GET /_cerulean/packet?to=ADDRESS&port=PORT` with, as needed, `protocol` (`tcp` or `udp`), the
/// sender (`from`, an address on the internet; `node`, a machine; `pod`, an address; `network` with `from`, a host in a
/// virtual network; `endpoint`, a client of a private endpoint) and `source_port`; or by POST of a [`Packet`] as JSON.
/// The answer is a [`Verdict`](azure_packets::Verdict).
pub fn router<S: PageSource>(source: Arc<S>) -> Router {
    let routes = Router::new()
        .route("/", get(|| async { Redirect::temporary(PATH) }))
        .route(PATH, get(page))
        .route("/_cerulean/topology", get(topology::<S>))
        .route("/_cerulean/packet", get(packet_by_query::<S>).post(packet_by_body::<S>))
        .route("/_cerulean/flows", post(flows::<S>))
        .route("/_cerulean/events", get(events::<S>));
    guarded(routes).with_state(source)
}

async fn page() -> Response {
    ([(CONTENT_SECURITY_POLICY, POLICY), (CACHE_CONTROL, "no-cache")], Html(PAGE)).into_response()
}

async fn topology<S: PageSource>(State(source): State<Arc<S>>) -> Response {
    // With thousands of nodes and rules this takes long enough to hold up other requests.
    match tokio::task::spawn_blocking(move || source.topology()).await {
        Ok(topology) => ([(CACHE_CONTROL, "no-store")], Json(topology)).into_response(),
        Err(_panicked) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn packet_by_body<S: PageSource>(
    State(source): State<Arc<S>>,
    packet: Result<Json<Packet>, JsonRejection>,
) -> Response {
    match packet {
        Ok(Json(packet)) => Json(source.packet(&packet)).into_response(),
        Err(rejection) => refused(&rejection.body_text()),
    }
}

/// Thousands of flows take long enough to hold up other requests.
async fn flows<S: PageSource>(
    State(source): State<Arc<S>>,
    plan: Result<Json<FlowPlan>, JsonRejection>,
) -> Response {
    let plan = match plan {
        Ok(Json(plan)) => plan,
        Err(rejection) => return refused(&rejection.body_text()),
    };
    match tokio::task::spawn_blocking(move || source.flows(&plan)).await {
        Ok(report) => Json(report).into_response(),
        Err(_panicked) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn packet_by_query<S: PageSource>(
    State(source): State<Arc<S>>,
    Query(query): Query<Parameters>,
) -> Response {
    match parse(&query) {
        Ok(packet) => Json(source.packet(&packet)).into_response(),
        Err(text) => refused(&text),
    }
}

fn refused(text: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({ "error": { "code": "InvalidPacket", "message": text } })))
        .into_response()
}

/// The allowed parameters of a packet in a URL.
const PACKET_PARAMETERS: [&str; 9] =
    ["to", "port", "protocol", "from", "node", "pod", "network", "endpoint", "source_port"];

fn parse(query: &Parameters) -> Result<Packet, String> {
    parameters::check(query, &PACKET_PARAMETERS)?;
    let field = |name: &str| query.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let number = |name: &str, text: &str| {
        let port: Result<u16, _> = text.parse();
        port.ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| format!("{name} `{text}` must be a number from 1 to 65535"))
    };
    let address = |name: &str, text: &str| {
        let bare = text.trim_matches(['[', ']']);
        bare.parse::<IpAddr>().map_err(|_| format!("{name} `{text}` must be an IP address"))
    };
    let to = address("to", field("to").ok_or("to is missing: give the address to send to")?)?;
    let port = number("port", field("port").ok_or("port is missing: give the port to send to")?)?;
    let protocol = match field("protocol").unwrap_or("tcp") {
        word if word.eq_ignore_ascii_case("tcp") => Protocol::Tcp,
        word if word.eq_ignore_ascii_case("udp") => Protocol::Udp,
        word => return Err(format!("protocol `{word}` must be tcp or udp")),
    };
    let senders = ["node", "pod", "endpoint", if field("network").is_some() { "network" } else { "from" }];
    let senders: Vec<&str> = senders.into_iter().filter(|name| field(name).is_some()).collect();
    if senders.len() > 1 {
        return Err(format!(
            "{} are all given: a packet has one sender, keep one of them",
            senders.join(", ")
        ));
    }
    let from = match (field("node"), field("pod"), field("network"), field("endpoint"), field("from")) {
        (Some(node), ..) => Source::node(node),
        (_, Some(pod), ..) => Source::pod(address("pod", pod)?),
        (.., Some(network), _, Some(from)) => Source::virtual_network(network, address("from", from)?),
        (_, _, Some(_), _, None) => return Err("from is missing: give an address in the network".to_owned()),
        (.., Some(endpoint), _) => Source::private_endpoint(endpoint),
        (.., Some(text)) => Source::internet(address("from", text)?),
        _ => Source::internet(if to.is_ipv4() { SOMEONE } else { SOMEONE_V6 }),
    };
    let packet = Packet::new(from, to, port, protocol);
    match field("source_port") {
        Some(text) => Ok(packet.with_source_port(number("source_port", text)?)),
        None => Ok(packet),
    }
}

async fn events<S: PageSource>(State(source): State<Arc<S>>) -> impl IntoResponse {
    Sse::new(revisions(source.changed())).keep_alive(KeepAlive::default())
}

/// The present revision, and each later one that a reader is notified of.
fn revisions(changed: watch::Receiver<u64>) -> impl Stream<Item = Result<Event, Infallible>> {
    futures::stream::unfold((changed, false), |(mut changed, told)| async move {
        if told {
            tokio::time::sleep(EVENT_INTERVAL).await;
            changed.changed().await.ok()?;
        }
        let revision = *changed.borrow_and_update();
        Some((Ok(Event::default().event("changed").data(revision.to_string())), (changed, true)))
    })
}
