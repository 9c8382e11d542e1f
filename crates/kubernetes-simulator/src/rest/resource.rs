//! The verbs over HTTP.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::path::ResourcePath;
use super::query::Query;
use super::representation::{self, Representation};
use super::{answer, body};
use crate::kubernetes::Kubernetes;
use crate::object::{Object, string_at, to_bytes};
use crate::registry::Kind;
use crate::review;
use crate::selector::{FieldSelector, LabelSelector, Selection};
use crate::status::{self, ApiError};
use crate::verbs::namespace;
use crate::verbs::{Deletion, ListOptions, Page, Part, Write};
use crate::watch::{Start, Watch};

/// A request whose kind is known.
struct Call {
    kubernetes: Kubernetes,
    kind: Arc<Kind>,
    path: ResourcePath,
    query: Query,
    representation: Representation,
    headers: HeaderMap,
    manager: String,
}

pub(super) async fn serve(
    kubernetes: Kubernetes,
    verb: &str,
    path: ResourcePath,
    query: Query,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let kind = kubernetes.shared.state.lock().registry.by_path(&path.group, &path.version, &path.plural);
    let kind = kind.ok_or_else(ApiError::no_such_resource)?;
    // Paths in a namespace exist for namespaced kinds alone, and names of those need one.
    if !kind.namespaced && !path.namespace.is_empty() {
        return Err(ApiError::no_such_resource());
    }
    if kind.namespaced && path.namespace.is_empty() {
        match verb {
            _ if !path.name.is_empty() => return Err(ApiError::no_such_resource()),
            "create" | "deletecollection" => return Err(ApiError::method_not_allowed()),
            _ => {}
        }
    }
    let (parts, request_body) = request.into_parts();
    if kind.is_review() {
        if verb != "create" {
            return Err(ApiError::method_not_allowed());
        }
        let question = body::question(&parts.headers, &body::read(request_body).await?)?;
        let answer = review::answer(&kind, question, &kubernetes.shared.options.tokens);
        return Ok(answer::bytes(StatusCode::CREATED, answer::JSON, to_bytes(&answer)));
    }
    let representation =
        Representation::negotiate(representation::accept(&parts.headers), query.include_object.as_deref())?;
    let manager = query.field_manager.clone().unwrap_or_else(|| user_agent(&parts.headers));
    let call = Call { kubernetes, kind, path, query, representation, headers: parts.headers, manager };
    match (call.path.subresource.as_str(), verb) {
        ("" | "status", "get") => call.check_subresource()?.get(),
        ("", "list") => call.list(),
        ("", "watch") => call.watch(),
        ("", "create") => call.create(&body::read(request_body).await?),
        ("" | "status", "update") => call.check_subresource()?.update(&body::read(request_body).await?),
        ("" | "status", "patch") => call.check_subresource()?.patch(&body::read(request_body).await?),
        ("", "delete") => call.delete(&body::read(request_body).await?),
        ("", "deletecollection") => call.delete_collection(&body::read(request_body).await?),
        ("scale", "get" | "update" | "patch") if call.kind.scale => {
            call.scale(verb, &body::read(request_body).await?)
        }
        ("" | "status" | "scale", _) => Err(ApiError::method_not_allowed()),
        _ => Err(ApiError::no_such_resource()),
    }
}

/// The part of `User-Agent` that names the program: the default field manager.
fn user_agent(headers: &HeaderMap) -> String {
    let agent =
        headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("unknown");
    agent.split('/').next().unwrap_or("unknown").to_owned()
}

impl Call {
    fn check_subresource(self) -> Result<Self, ApiError> {
        if self.path.subresource == "status" && !self.kind.has_status() {
            return Err(ApiError::no_such_resource());
        }
        Ok(self)
    }

    fn part(&self) -> Part {
        if self.path.subresource == "status" { Part::Status } else { Part::Main }
    }

    fn write(&self) -> Write<'_> {
        Write { now: self.kubernetes.now(), dry_run: self.query.dry_run, manager: &self.manager }
    }

    fn selection(&self) -> Result<Selection, ApiError> {
        let labels = LabelSelector::parse(&self.query.label_selector).map_err(ApiError::bad_request)?;
        let field_text = match (self.path.name.as_str(), self.query.field_selector.as_str()) {
            ("", text) => text.to_owned(),
            (name, "") => format!("metadata.name={name}"),
            (name, text) => format!("metadata.name={name},{text}"),
        };
        let fields = FieldSelector::parse(&field_text, &self.kind).map_err(ApiError::bad_request)?;
        Ok(Selection { namespace: self.path.namespace.clone(), labels, fields })
    }

    fn answer(&self, status: StatusCode, object: &Object) -> Response<Body> {
        let bytes = self.representation.object(&self.kind, object, self.kubernetes.now(), true);
        answer::bytes(status, answer::JSON, bytes)
    }

    fn get(&self) -> Result<Response<Body>, ApiError> {
        let object = {
            let state = self.kubernetes.shared.state.lock();
            state.get(&self.kind, &self.path.namespace, &self.path.name)?
        };
        Ok(self.answer(StatusCode::OK, &object))
    }

    fn page(&self) -> Result<Page, ApiError> {
        let options = ListOptions {
            selection: self.selection()?,
            limit: self.query.limit,
            token: self.query.token.clone(),
            version: self.query.resource_version,
            version_match: self.query.version_match,
        };
        self.kubernetes.shared.state.lock().list(&self.kind, &options)
    }

    fn list(&self) -> Result<Response<Body>, ApiError> {
        let page = self.page()?;
        let bytes = self.representation.list(&self.kind, &page, self.kubernetes.now());
        Ok(answer::bytes(StatusCode::OK, answer::JSON, bytes))
    }

    fn watch(self) -> Result<Response<Body>, ApiError> {
        let selection = self.selection()?;
        let start = match (self.query.send_initial_events, self.query.resource_version) {
            (true, version) => Start::InitialEvents { not_older_than: version.unwrap_or(0) },
            (false, None | Some(0)) => Start::Newest,
            (false, Some(version)) => Start::After(version),
        };
        let watch = Watch::new(
            self.kubernetes,
            self.kind,
            selection,
            self.representation,
            start,
            self.query.bookmarks,
            self.query.timeout_seconds,
        )?;
        let body = Body::from_stream(watch.into_stream());
        Ok(answer::stream(StatusCode::OK, answer::JSON, body))
    }

    fn create(&self, bytes: &Bytes) -> Result<Response<Body>, ApiError> {
        let object = body::object(&self.headers, bytes)?;
        let created = {
            let mut state = self.kubernetes.shared.state.lock();
            state.create(&self.kind, &self.path.namespace, object, &self.write())?
        };
        Ok(self.answer(StatusCode::CREATED, &created))
    }

    fn update(&self, bytes: &Bytes) -> Result<Response<Body>, ApiError> {
        let object = body::object(&self.headers, bytes)?;
        let (updated, created) = {
            let mut state = self.kubernetes.shared.state.lock();
            let (namespace, name) = (&self.path.namespace, &self.path.name);
            state.update(&self.kind, namespace, name, self.part(), object, &self.write())?
        };
        Ok(self.answer(if created { StatusCode::CREATED } else { StatusCode::OK }, &updated))
    }

    fn patch(&self, bytes: &Bytes) -> Result<Response<Body>, ApiError> {
        let (patch, how) = body::patch(&self.headers, &self.query, self.kind.custom, bytes)?;
        let (patched, created) = {
            let mut state = self.kubernetes.shared.state.lock();
            let (namespace, name) = (&self.path.namespace, &self.path.name);
            state.patch(&self.kind, namespace, name, self.part(), (&patch, &how), &self.write())?
        };
        Ok(self.answer(if created { StatusCode::CREATED } else { StatusCode::OK }, &patched))
    }

    fn delete(&self, bytes: &Bytes) -> Result<Response<Body>, ApiError> {
        let (options, dry_run) = body::delete_options(&self.query, bytes)?;
        let write = Write { dry_run, ..self.write() };
        let deletion = {
            let mut state = self.kubernetes.shared.state.lock();
            state.delete(&self.kind, &self.path.namespace, &self.path.name, &options, &write)?
        };
        if !dry_run && *self.kind.shelf == *namespace::SHELF {
            self.empty_later(&self.path.name);
        }
        Ok(match deletion {
            Deletion::Removed(last) => {
                let status = status::deleted(&self.kind, last.name(), last.uid());
                answer::bytes(StatusCode::OK, answer::JSON, to_bytes(&status))
            }
            Deletion::Waiting(object) => self.answer(StatusCode::OK, &object),
        })
    }

    /// Empties a namespace that was deleted.
    fn empty_later(&self, name: &str) {
        let (kubernetes, manager, name) = (self.kubernetes.clone(), self.manager.clone(), name.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(namespace::LINGER).await;
            let write = Write { now: kubernetes.now(), dry_run: false, manager: &manager };
            kubernetes.shared.state.lock().empty_namespace(&name, &write);
        });
    }

    fn delete_collection(&self, bytes: &Bytes) -> Result<Response<Body>, ApiError> {
        let (options, dry_run) = body::delete_options(&self.query, bytes)?;
        let write = Write { dry_run, ..self.write() };
        let page = self.page()?;
        {
            let mut state = self.kubernetes.shared.state.lock();
            for object in &page.items {
                match state.delete(&self.kind, object.namespace(), object.name(), &options, &write) {
                    Ok(_) => {}
                    // It went with its owner, earlier in this collection.
                    Err(error) if error.code == 404 => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if !dry_run && *self.kind.shelf == *namespace::SHELF {
            page.items.iter().for_each(|object| self.empty_later(object.name()));
        }
        let bytes = self.representation.list(&self.kind, &page, self.kubernetes.now());
        Ok(answer::bytes(StatusCode::OK, answer::JSON, bytes))
    }

    /// The `scale` subresource: `spec.replicas` behind a kind of its own.
    fn scale(&self, verb: &str, bytes: &Bytes) -> Result<Response<Body>, ApiError> {
        let mut state = self.kubernetes.shared.state.lock();
        let mut object = state.get(&self.kind, &self.path.namespace, &self.path.name)?;
        if verb != "get" {
            let wanted = if verb == "update" {
                body::object(&self.headers, bytes)?
            } else {
                let (patch, how) = body::patch(&self.headers, &self.query, self.kind.custom, bytes)?;
                crate::patch::patch("Scale", Some(&scale_of(&object)), &patch, &how)
                    .map_err(|error| ApiError::bad_request(error.to_string()))?
            };
            let replicas = wanted.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(0);
            let version = string_at(&wanted, &["metadata", "resourceVersion"]).unwrap_or_default();
            object = state.scale(&self.kind, &object, replicas, version, &self.write())?;
        }
        Ok(answer::bytes(StatusCode::OK, answer::JSON, to_bytes(&scale_of(&object))))
    }
}

fn scale_of(object: &Object) -> Value {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let mut metadata = serde_json::Map::new();
    for member in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.pointer(&format!("/metadata/{member}")) {
            metadata.insert(member.to_owned(), value.clone());
        }
    }
    let labels = object.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let selector =
        labels.into_iter().flatten().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()));
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": { "replicas": number("/spec/replicas") },
        "status": {
            "replicas": number("/status/replicas"),
            "selector": selector.collect::<Vec<_>>().join(","),
        },
    })
}
