//! One listener for the metadata of all machines.

use azure_engine::provider::AzureState;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use axum::{Json, Router};
use azure_types::ResourceId;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize;
use serde_json::{Value, json};

use super::compute::Machine;
use super::host::Host;
use super::leaf::{Format, LookUp, look_up};
use super::token::{self, MachineIdentities};
use super::{caller, compute, load_balancer, network, versions};
use azure_entra::Entra;
use azure_providers::compute::scheduled_events;

/// The metadata service of all machines of a simulated Azure: serve [`MetadataService::router`] with
/// `azure_simulator::serve::serve` on a listener of its own.
///
/// The path selects the machine: `/instances/{machine}/metadata/...`, by its resource id, its name or its host name.
/// Without it the source address decides (see `Azure::set_metadata_addresses`).
#[derive(Debug, Clone)]
pub struct MetadataService {
    azure: Arc<dyn Host>,
    entra: Option<Entra>,
}

/// Largest body that is read, in bytes: approvals are small.
const MAX_BODY_BYTES: usize = 64 * 1024;

impl MetadataService {
    /// A service without tokens.
    pub fn new(azure: impl Host + 'static) -> Self {
        Self { azure: Arc::new(azure), entra: None }
    }

    /// Lets machines get tokens of the identities that are assigned to them or to their scale set.
    #[must_use]
    pub fn with_tokens(mut self, entra: Entra) -> Self {
        self.entra = Some(entra);
        self
    }

    /// The HTTP surface, for a listener of its own.
    pub fn router(&self) -> Router {
        Router::new().fallback(answer).with_state(self.clone())
    }

    /// The same for a listener that serves Resource Manager, too.
    pub fn routes(&self) -> Router {
        Router::new()
            .route("/metadata/{*below}", any(answer))
            .route("/instances/{*below}", any(answer))
            .with_state(self.clone())
    }
}

enum Problem {
    Forwarded,
    NoHeader,
    NoVersion(&'static [&'static str]),
    BadVersion(&'static [&'static str]),
    NotFound,
    /// The requested machine, and how to fix the request.
    NoMachine(String),
    NoBalancer,
    NeedsText,
    BadFormat,
    Method,
    BadBody,
    UnknownEvent,
}

impl Problem {
    fn answer(&self) -> Response {
        let newest = |versions: &[&str]| -> Vec<String> {
            versions.iter().rev().take(3).map(|version| (*version).to_owned()).collect()
        };
        let versions = |why: &str, versions: &[&str]| {
            let text = format!("Bad request. {why} For more information refer to aka.ms/azureimds");
            (StatusCode::BAD_REQUEST, json!({ "error": text, "newest-versions": newest(versions) }))
        };
        let bad = |text: &str| (StatusCode::BAD_REQUEST, json!({ "error": format!("Bad request. {text}") }));
        let (status, body) = match self {
            Self::Forwarded => bad("Requests that carry X-Forwarded-For are not accepted"),
            Self::NoHeader => bad("Required metadata header not specified"),
            Self::NoVersion(known) => versions("api-version was not specified in the request.", known),
            Self::BadVersion(known) => versions("api-version is invalid.", known),
            Self::NeedsText => bad("A single value is given as text: format=text must be specified"),
            Self::BadFormat => bad("format must be json or text"),
            Self::BadBody => bad("The body must be JSON with StartRequests"),
            Self::UnknownEvent => bad("The event is not one of this machine"),
            Self::NotFound => (StatusCode::NOT_FOUND, json!({ "error": "Not found" })),
            Self::NoMachine(text) => (StatusCode::NOT_FOUND, json!({ "error": text })),
            Self::NoBalancer => (
                StatusCode::NOT_FOUND,
                json!({
                    "error": "No load balancer metadata is found. Please check if your VM is using any non-basic SKU load \
                              balancer and retry later."
                }),
            ),
            Self::Method => (StatusCode::METHOD_NOT_ALLOWED, json!({ "error": "Method not allowed" })),
        };
        (status, Json(body)).into_response()
    }
}

/// The subject of a path: the machine that it names, and the segments behind `metadata`.
fn split(path: &str) -> Option<(Option<String>, Vec<String>)> {
    let (machine, rest) = match path.strip_prefix("/instances/") {
        // The last one: a machine may be called anything.
        Some(below) => {
            let at = below.to_ascii_lowercase().rfind("/metadata/")?;
            (Some(decoded(below.get(..at)?)?), below.get(at..)?)
        }
        None => (None, path),
    };
    let mut segments = rest.split('/').filter(|segment| !segment.is_empty());
    let first = segments.next()?;
    let segments = segments.map(decoded).collect::<Option<Vec<String>>>()?;
    first.eq_ignore_ascii_case("metadata").then_some((machine, segments))
}

/// Decodes `%xx`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

async fn answer(State(service): State<MetadataService>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip().to_canonical());
    let query: HashMap<String, String> =
        url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let Some((named, path)) = split(parts.uri.path()) else { return Problem::NotFound.answer() };
    let words: Vec<String> = path.iter().map(|word| word.to_ascii_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["identity", "oauth2", "token"] = *words {
        return service.token(named.as_deref(), peer, query, &parts.headers);
    }
    let asked = MetadataRequest { service: &service, named, peer, query, method: parts.method };
    match asked.answer(&words, &parts.headers, body).await {
        Ok(response) => response,
        Err(problem) => problem.answer(),
    }
}

impl MetadataService {
    /// Reads the state, or changes it.
    fn change<T: Default>(&self, change: impl FnOnce(&mut AzureState) -> T) -> T {
        let (mut change, mut found) = (Some(change), T::default());
        self.azure.with_state(&mut |state| {
            if let Some(change) = change.take() {
                found = change(state);
            }
        });
        found
    }

    fn machine(&self, named: Option<&str>, peer: Option<IpAddr>) -> Option<ResourceId> {
        let table = self.azure.metadata_addresses();
        self.change(|state| match named {
            Some(named) => caller::by_name(state, named),
            None => caller::by_address(state, &table, peer),
        })
    }

    fn token(
        &self,
        named: Option<&str>,
        peer: Option<IpAddr>,
        query: HashMap<String, String>,
        headers: &HeaderMap,
    ) -> Response {
        let Some(entra) = self.entra.clone() else { return Problem::NotFound.answer() };
        let machine = self.machine(named, peer);
        let identities = machine.map(|machine| {
            let found = self.change(|state| azure_providers::identity::assigned(state, &machine));
            let tenant = self.change(|state| state.tenant_of(machine.subscription_id()).to_owned());
            (found, tenant)
        });
        let (identities, tenant) = identities.unwrap_or_default();
        token::answer(&MachineIdentities { entra, identities }, Some(&tenant), query, headers)
    }
}

/// One request.
struct MetadataRequest<'a> {
    service: &'a MetadataService,
    named: Option<String>,
    peer: Option<IpAddr>,
    query: HashMap<String, String>,
    method: Method,
}

impl MetadataRequest<'_> {
    async fn answer(&self, words: &[&str], headers: &HeaderMap, body: Body) -> Result<Response, Problem> {
        // A request that was passed on does not come from the machine.
        if headers.contains_key("x-forwarded-for") {
            return Err(Problem::Forwarded);
        }
        let header = headers.get("metadata").and_then(|value| value.to_str().ok());
        if !header.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Err(Problem::NoHeader);
        }
        let get = matches!(self.method, Method::GET | Method::HEAD);
        match words {
            ["versions"] if get => {
                Ok(Json(json!({ "apiVersions": versions::INSTANCE.as_slice() })).into_response())
            }
            ["instance", below @ ..] if get => self.instance(below),
            ["loadbalancer", below @ ..] if get => self.load_balancer(below),
            ["scheduledevents"] if get => {
                let version = self.version(&versions::SCHEDULED_EVENTS, versions::SCHEDULED_EVENTS[0])?;
                let machine = self.machine()?;
                let document =
                    self.service.change(|state| scheduled_events::events_document(state, &machine, version));
                Ok(Json(document).into_response())
            }
            ["scheduledevents"] if self.method == Method::POST => self.approve(body).await,
            ["versions" | "scheduledevents"] | ["instance" | "loadbalancer", ..] => Err(Problem::Method),
            _ => Err(Problem::NotFound),
        }
    }

    /// The requested version, if it is one of these and not older than the first.
    fn version(&self, known: &'static [&'static str], first: &str) -> Result<&str, Problem> {
        let given = self.query.get("api-version").map(String::as_str).filter(|version| !version.is_empty());
        let given = given.ok_or(Problem::NoVersion(known))?;
        if known.contains(&given) && given >= first { Ok(given) } else { Err(Problem::BadVersion(known)) }
    }

    fn machine(&self) -> Result<ResourceId, Problem> {
        let found = self.service.machine(self.named.as_deref(), self.peer);
        found.ok_or_else(|| Problem::NoMachine(self.describe_absent()))
    }

    /// The requested machine, and how to fix the request.
    fn describe_absent(&self) -> String {
        let known = self.service.change(|state| caller::machine_names(state));
        let known = match known.as_slice() {
            [] => "there is no machine: PUT a virtual machine, or a scale set with a capacity".to_owned(),
            known => format!("there are: {}", known.join(", ")),
        };
        match (&self.named, self.peer) {
            (Some(named), _) => format!("No machine is called '{named}'; {known}"),
            (None, peer) => format!(
                "No machine is known for the caller {}: name one in the path, /instances/NAME/metadata/..., or give it \
                 the address with PUT /_cerulean/metadata-addresses; {known}",
                peer.map(|peer| peer.to_string()).unwrap_or_default(),
            ),
        }
    }

    fn read(&self) -> Result<Machine, Problem> {
        let found = Machine::read(self.service.azure.as_ref(), &self.machine()?);
        found.ok_or_else(|| Problem::NoMachine(self.describe_absent()))
    }

    fn format(&self) -> Result<Format, Problem> {
        match self.query.get("format").map(|format| format.to_ascii_lowercase()).as_deref() {
            None | Some("" | "json") => Ok(Format::Json),
            Some("text") => Ok(Format::Text),
            Some(_) => Err(Problem::BadFormat),
        }
    }

    fn shown(&self, document: &Value, path: &[&str]) -> Result<Response, Problem> {
        match look_up(document, path, self.format()?) {
            LookUp::Json(part) => Ok(Json(part).into_response()),
            LookUp::Text(text) => Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()),
            LookUp::Nothing => Err(Problem::NotFound),
            LookUp::NeedsText => Err(Problem::NeedsText),
        }
    }

    fn instance(&self, path: &[&str]) -> Result<Response, Problem> {
        let version = self.version(&versions::INSTANCE, versions::INSTANCE[0])?;
        let machine = self.read()?;
        let mut described = compute::document(&machine);
        versions::shape_compute(&mut described, version);
        // The other half is not made where only this one is asked for.
        let network = match path.first() {
            Some(&"compute") => Value::Null,
            _ => network::document(self.service.azure.as_ref(), &machine),
        };
        self.shown(&json!({ "compute": described, "network": network }), path)
    }

    fn load_balancer(&self, path: &[&str]) -> Result<Response, Problem> {
        self.version(&versions::INSTANCE, versions::LOAD_BALANCER)?;
        let machine = self.read()?;
        let document =
            load_balancer::document(self.service.azure.as_ref(), &machine).ok_or(Problem::NoBalancer)?;
        match path {
            [] => self.shown(&document, path),
            path => self.shown(document.get("loadbalancer").unwrap_or(&Value::Null), path),
        }
    }

    async fn approve(&self, body: Body) -> Result<Response, Problem> {
        /// The body with which a machine approves events.
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Approval {
            start_requests: Vec<StartRequest>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct StartRequest {
            event_id: String,
        }
        self.version(&versions::SCHEDULED_EVENTS, versions::SCHEDULED_EVENTS[0])?;
        let body = Limited::new(body, MAX_BODY_BYTES).collect().await.map_err(|_| Problem::BadBody)?;
        let approval: Approval = serde_json::from_slice(&body.to_bytes()).map_err(|_| Problem::BadBody)?;
        let machine = self.machine()?;
        let ids: Vec<String> = approval.start_requests.into_iter().map(|request| request.event_id).collect();
        match self.service.change(|state| scheduled_events::approve_events(state, &machine, &ids)) {
            true => Ok(StatusCode::OK.into_response()),
            false => Err(Problem::UnknownEvent),
        }
    }
}
