//! The part of Microsoft Graph that clients of Resource Manager use: the object id of an application, and the objects
//! behind the ids in role assignments. There are service principals; a simulated directory has no users and no groups.

mod answers;
mod filter;

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::HeaderMap;
use serde_json::{Value, json};
use std::collections::HashMap;

use self::answers::GraphRefusal;
use self::filter::Filter;
use crate::audience::GRAPH_AUDIENCE;
use crate::directory::Entra;
use crate::service_principal::ServicePrincipal;
use crate::verifier::TokenVerifier as _;

/// The most ids that `getByIds` takes.
const MAX_IDS: usize = 1_000;

/// The paths of the service, which do not meet those of the directory itself.
pub(crate) fn routes() -> Router<Entra> {
    Router::new()
        .route("/v1.0/servicePrincipals", get(service_principals))
        .route("/v1.0/servicePrincipals/{id}", get(service_principal))
        .route("/v1.0/users", get(users))
        .route("/v1.0/users/{id}", get(nobody))
        .route("/v1.0/groups", get(groups))
        .route("/v1.0/groups/{id}", get(nobody))
        .route("/v1.0/me", get(me))
        .route("/v1.0/directoryObjects/getByIds", post(by_ids))
        .route("/v1.0/{*segments}", axum::routing::any(nothing))
}

type Answer = Result<Json<Value>, GraphRefusal>;
type Options = Query<HashMap<String, String>>;

async fn service_principals(
    State(entra): State<Entra>,
    Query(options): Options,
    headers: HeaderMap,
) -> Response {
    entra.answer(&headers, |tenant| {
        let known = entra.service_principals(tenant).into_iter().map(|principal| principal.document());
        list("servicePrincipals", &options, known.collect())
    })
}

async fn users(State(entra): State<Entra>, Query(options): Options, headers: HeaderMap) -> Response {
    entra.answer(&headers, |_| list("users", &options, Vec::new()))
}

async fn groups(State(entra): State<Entra>, Query(options): Options, headers: HeaderMap) -> Response {
    entra.answer(&headers, |_| list("groups", &options, Vec::new()))
}

fn list(set: &str, options: &HashMap<String, String>, mut documents: Vec<Value>) -> Answer {
    if let Some(text) = options.get("$filter") {
        let filter = Filter::parse(text).ok_or_else(|| GraphRefusal::unsupported_filter(text))?;
        documents.retain(|document| filter.holds(document));
    }
    Ok(Json(json!({ "@odata.context": context(set), "value": documents })))
}

async fn service_principal(
    State(entra): State<Entra>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    entra.answer(&headers, |tenant| {
        let mut known = entra.service_principals(tenant).into_iter();
        let found = known.find(|principal| principal.object_id.eq_ignore_ascii_case(&id));
        let mut document = found.ok_or_else(|| GraphRefusal::absent(&id))?.document();
        document["@odata.context"] = context("servicePrincipals/$entity").into();
        Ok(Json(document))
    })
}

async fn nobody(State(entra): State<Entra>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    entra.answer(&headers, |_| Err(GraphRefusal::absent(&id)))
}

async fn me(State(entra): State<Entra>, headers: HeaderMap) -> Response {
    entra.answer(&headers, |_| Err(GraphRefusal::no_user_signed_in()))
}

async fn nothing(State(entra): State<Entra>, Path(segments): Path<String>, headers: HeaderMap) -> Response {
    let first = segments.split('/').next().unwrap_or_default();
    entra.answer(&headers, |_| Err(GraphRefusal::unknown_segment(first)))
}

/// `POST /directoryObjects/getByIds`: the existing objects; other ids are left out.
async fn by_ids(State(entra): State<Entra>, headers: HeaderMap, body: Bytes) -> Response {
    entra.answer(&headers, |tenant| {
        let body: Value = serde_json::from_slice(&body).map_err(|_| GraphRefusal::bad_body())?;
        let texts = |name: &str| -> Option<Vec<&str>> {
            body.get(name)?.as_array()?.iter().map(Value::as_str).collect()
        };
        let ids = texts("ids").filter(|ids| ids.len() <= MAX_IDS).ok_or_else(GraphRefusal::bad_body)?;
        let of_type = texts("types").is_none_or(|types| {
            types
                .iter()
                .any(|name| name.eq_ignore_ascii_case("servicePrincipal") || *name == "directoryObject")
        });
        let known = if of_type { entra.service_principals(tenant) } else { Vec::new() };
        let asked =
            |principal: &ServicePrincipal| ids.iter().any(|id| id.eq_ignore_ascii_case(&principal.object_id));
        let found = known.into_iter().filter(asked).map(|principal| {
            let mut document = principal.document();
            document["@odata.type"] = "#microsoft.graph.servicePrincipal".into();
            document
        });
        Ok(Json(json!({ "@odata.context": context("directoryObjects"), "value": found.collect::<Vec<_>>() })))
    })
}

fn context(set: &str) -> String {
    format!("{GRAPH_AUDIENCE}/v1.0/$metadata#{set}")
}

impl Entra {
    /// The answer to a caller with a token for Microsoft Graph: `asked` gets the tenant that issued it.
    fn answer(&self, headers: &HeaderMap, asked: impl FnOnce(&str) -> Answer) -> Response {
        let answer = self.admit(headers).and_then(|tenant| asked(&tenant));
        answer.map_or_else(|refusal| refusal.into_answer(self, headers), |body| body.into_response())
    }

    fn admit(&self, headers: &HeaderMap) -> Result<String, GraphRefusal> {
        let header = headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let (_, token) = header
            .and_then(|text| text.split_once(' '))
            .filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"))
            .ok_or_else(GraphRefusal::no_token)?;
        let is_graph = |audience: &str| audience.trim_end_matches('/').eq_ignore_ascii_case(GRAPH_AUDIENCE);
        let caller = self.verify_for(token.trim(), self.now(), &is_graph);
        caller.map(|caller| caller.tenant_id).map_err(|why| GraphRefusal::bad_token(&why))
    }
}
