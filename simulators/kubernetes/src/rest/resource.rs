//! The verbs over HTTP.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::answer::{self, Warnings};
use super::body;
use super::path::ResourcePath;
use super::query::{Query, UnknownMembers};
use super::representation::{self, Representation};
use crate::hook::Admission;
use crate::identity::{self, User};
use crate::object::Object;
use crate::registry::Kind;
use crate::rest::watch::{Watch, WatchOptions, WatchStart};
use crate::selector::{FieldSelector, LabelSelector, Selection};
use crate::server::handle::Kubernetes;
use crate::status;
use crate::status::ApiError;
use crate::verbs::shelves::PODS;
use crate::verbs::write::decode::cannot_be_handled;
use crate::verbs::write::propose::{Proposal, Tracking};
use crate::verbs::write::scale;
use crate::verbs::{
    Deletion, FieldValidation, ListOptions, Page, Part, Propagation, Reaction, State, VersionMatch, Write,
};

/// A request for a known kind.
struct ResourceRequest {
    kubernetes: Kubernetes,
    kind: Arc<Kind>,
    path: ResourcePath,
    query: Query,
    representation: Representation,
    headers: HeaderMap,
    manager: String,
    user: Value,
    /// Warnings for the client, beside the response.
    warnings: Warnings,
}

pub(super) async fn serve(
    kubernetes: Kubernetes,
    verb: &str,
    path: ResourcePath,
    query: Query,
    user: User,
    request: Request,
    warnings: Warnings,
) -> Result<Response<Body>, ApiError> {
    let kind = path.kind(&kubernetes).ok_or_else(ApiError::no_such_resource)?;
    // Paths in a namespace exist only for namespaced kinds, and objects of those need a namespace.
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
    warnings.lock().extend(kind.deprecation.clone());
    let (mut parts, request_body) = request.into_parts();
    if path.subresource == "portforward" && *kind.shelf == *PODS && kubernetes.has_ports() {
        kubernetes.shared.state.lock().get(&kind, &path.namespace, &path.name)?;
        return kubernetes.forward_ports(&path.namespace, &path.name, &mut parts);
    }
    if kind.is_review() {
        if verb != "create" {
            return Err(ApiError::method_not_allowed());
        }
        let bytes = body::read(request_body).await?;
        let (question, _) = body::object(&parts.headers, &kind, &bytes)?;
        let answer = identity::answer(&kubernetes, &kind, question, &user);
        return Ok(answer::json(StatusCode::CREATED, &answer));
    }
    let representation =
        Representation::negotiate(representation::accept(&parts.headers), query.include_object.as_deref())?;
    let manager = query.field_manager.clone().unwrap_or_else(|| user_agent(&parts.headers));
    let (headers, user) = (parts.headers, user.to_value());
    let call =
        ResourceRequest { kubernetes, kind, path, query, representation, headers, manager, user, warnings };
    call.serve(verb, &body::read(request_body).await?).await
}

/// The program in `User-Agent`: the default field manager.
fn user_agent(headers: &HeaderMap) -> String {
    let agent =
        headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("unknown");
    agent.split('/').next().unwrap_or("unknown").to_owned()
}

impl ResourceRequest {
    async fn serve(self, verb: &str, body: &Bytes) -> Result<Response<Body>, ApiError> {
        match (self.path.subresource.as_str(), verb) {
            ("" | "status", "get") => self.check_subresource()?.get().await,
            ("", "list") => self.list().await,
            ("", "watch") => self.watch().await,
            ("", "create") => self.create(body).await,
            ("" | "status", "update") => self.check_subresource()?.update(body).await,
            ("" | "status", "patch") => self.check_subresource()?.patch(body).await,
            ("", "delete") => self.delete(body).await,
            ("", "deletecollection") => self.delete_collection(body).await,
            ("scale", "get" | "update" | "patch") if self.kind.scale => self.scale(verb, body).await,
            ("token", "create") if self.serves("token") => {
                let request = self.other(body)?;
                let request = self.admission().connect(request, &self.write()).await?;
                let (namespace, name) = self.place();
                let answer = self.kubernetes.request_token(&self.kind, namespace, name, request)?;
                Ok(answer::json(StatusCode::CREATED, &answer))
            }
            ("finalize", "update") if self.serves("finalize") => self.update(body).await,
            ("binding", "create") if self.serves("binding") => self.bind(body).await,
            ("eviction", "create") if self.serves("eviction") => self.evict(body).await,
            ("log" | "exec" | "attach" | "portforward", _) if self.is_pod() => Err(self.runs_nothing()),
            ("" | "status" | "scale", _) => Err(ApiError::method_not_allowed()),
            _ => Err(ApiError::no_such_resource()),
        }
    }

    /// The error for subresources such as `exec` and `log`: no containers run.
    fn runs_nothing(&self) -> ApiError {
        let (name, what) = (&self.path.name, &self.path.subresource);
        let state = self.kubernetes.shared.state.lock();
        match state.store.has(&self.kind.shelf, &self.kind.key(&self.path.namespace, name)) {
            false => ApiError::not_found(&self.kind, name),
            true => {
                let message =
                    format!("pod {name:?} has no {what}: nothing runs in the pods of a simulated Kubernetes");
                ApiError::new(501, "NotImplemented", message).about(&self.kind, name)
            }
        }
    }

    /// The admission of the request.
    fn admission(&self) -> Admission<'_> {
        Admission {
            kubernetes: &self.kubernetes,
            kind: &self.kind,
            subresource: &self.path.subresource,
            namespace: &self.path.namespace,
            name: &self.path.name,
            user: &self.user,
            warnings: &self.warnings,
        }
    }

    fn check_subresource(self) -> Result<Self, ApiError> {
        if self.path.subresource == "status" && !self.kind.has_status() {
            return Err(ApiError::no_such_resource());
        }
        Ok(self)
    }

    /// The namespace and the name in the path.
    fn place(&self) -> (&str, &str) {
        (&self.path.namespace, &self.path.name)
    }

    fn part(&self) -> Part {
        Part::of(&self.path.subresource)
    }

    fn write(&self) -> Write<'_> {
        Write {
            now: self.kubernetes.now(),
            dry_run: self.query.dry_run,
            manager: &self.manager,
            fields: self.fields(&[]),
        }
    }

    /// The handling of unknown and duplicate members.
    fn fields<'a>(&'a self, duplicates: &'a [String]) -> FieldValidation<'a> {
        let reaction = match self.query.unknown {
            UnknownMembers::Ignore => Reaction::Ignore,
            UnknownMembers::Warn => Reaction::Warn(&self.warnings),
            UnknownMembers::Strict => Reaction::Strict,
        };
        FieldValidation { reaction, duplicates }
    }

    /// Parses an object that a subresource takes and that is not of the kind.
    fn other(&self, bytes: &[u8]) -> Result<Value, ApiError> {
        let (value, duplicates) = body::object(&self.headers, &self.kind, bytes)?;
        self.fields(&duplicates).settle(&[]).map_err(|why| cannot_be_handled(&self.kind, &why))?;
        Ok(value)
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

    fn answer(&self, status: StatusCode, object: &Arc<Object>) -> Response<Body> {
        let bytes = self.representation.object(&self.kind, object, self.kubernetes.now(), true);
        answer::bytes(status, answer::JSON, bytes)
    }

    /// The object at the path.
    async fn current(&self) -> Result<Arc<Object>, ApiError> {
        let (namespace, name) = self.place();
        self.kubernetes.settled(&self.kind, |state| state.get(&self.kind, namespace, name)).await
    }

    async fn get(&self) -> Result<Response<Body>, ApiError> {
        Ok(self.answer(StatusCode::OK, &self.current().await?))
    }

    async fn page(&self) -> Result<Page, ApiError> {
        let options = ListOptions {
            selection: self.selection()?,
            limit: self.query.limit,
            token: self.query.token.clone(),
            version: self.query.resource_version,
            version_match: self.query.version_match,
        };
        let list = |state: &mut State| {
            let mut options = options.clone();
            if let Some(version) = self.stale_version(state) {
                options.version = Some(version);
                options.version_match = Some(VersionMatch::Exact);
            }
            state.list(&self.kind, &options)
        };
        self.kubernetes.settled(&self.kind, list).await
    }

    /// The version that a lagging cache has reached, if the client allows stale data.
    fn stale_version(&self, state: &mut State) -> Option<u64> {
        let not_older_than = self.query.resource_version?;
        let exact = self.query.version_match == Some(VersionMatch::Exact) || self.query.token.is_some();
        let version = state.store.shelf(&self.kind.shelf).version_before(self.query.stale?.changes)?;
        let known = version >= not_older_than && version >= state.store.compacted();
        (known && !exact).then_some(version)
    }

    async fn list(&self) -> Result<Response<Body>, ApiError> {
        let page = self.page().await?;
        let bytes = self.representation.list(&self.kind, &page, self.kubernetes.now());
        Ok(answer::bytes(StatusCode::OK, answer::JSON, bytes))
    }

    async fn watch(self) -> Result<Response<Body>, ApiError> {
        let selection = self.selection()?;
        let start = match (self.query.send_initial_events, self.query.resource_version) {
            (true, version) => WatchStart::InitialEvents { not_older_than: version.unwrap_or(0) },
            (false, None | Some(0)) => WatchStart::Newest,
            (false, Some(version)) => WatchStart::After(version),
        };
        let stale = match start {
            WatchStart::After(_) => None,
            WatchStart::Newest | WatchStart::InitialEvents { .. } => {
                self.stale_version(&mut self.kubernetes.shared.state.lock())
            }
        };
        let lag = self.query.stale.filter(|_| self.query.resource_version.is_some());
        let (bookmarks, timeout_seconds) = (self.query.bookmarks, self.query.timeout_seconds);
        let options = WatchOptions { selection, start, stale, lag, bookmarks, timeout_seconds };
        let watch = Watch::new(self.kubernetes, self.kind, self.representation, options).await?;
        let body = Body::from_stream(watch.into_stream());
        Ok(answer::stream(StatusCode::OK, answer::JSON, body))
    }

    async fn create(&self, bytes: &Bytes) -> Result<Response<Body>, ApiError> {
        let (object, duplicates) = body::object(&self.headers, &self.kind, bytes)?;
        let namespace = &self.path.namespace;
        self.store(&duplicates, |state, write| {
            state.propose_create(&self.kind, namespace, object.clone(), Tracking::Changes, write)
        })
        .await
    }

    async fn update(&self, bytes: &Bytes) -> Result<Response<Body>, ApiError> {
        let (object, duplicates) = body::object(&self.headers, &self.kind, bytes)?;
        let (namespace, name) = self.place();
        self.store(&duplicates, |state, write| {
            state.propose_update(&self.kind, namespace, name, self.part(), object.clone(), write)
        })
        .await
    }

    async fn patch(&self, bytes: &Bytes) -> Result<Response<Body>, ApiError> {
        let ((patch, duplicates), how) =
            body::patch(&self.headers, &self.query, self.kind.is_custom(), bytes)?;
        let (namespace, name) = self.place();
        self.store(&duplicates, |state, write| {
            state.propose_patch(&self.kind, namespace, name, self.part(), (&patch, &how), write)
        })
        .await
    }

    /// Stores what a write proposes; `duplicates` are the messages of the body's duplicate members.
    async fn store(
        &self,
        duplicates: &[String],
        propose: impl Fn(&mut State, &Write<'_>) -> Result<Proposal, ApiError>,
    ) -> Result<Response<Body>, ApiError> {
        let write = Write { fields: self.fields(duplicates), ..self.write() };
        let (stored, is_new) = self.admission().write(&write, |state| propose(state, &write)).await?;
        Ok(self.answer(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &stored))
    }

    async fn delete(&self, bytes: &Bytes) -> Result<Response<Body>, ApiError> {
        let (options, dry_run) = body::delete_options(&self.headers, &self.query, bytes)?;
        let write = Write { dry_run, ..self.write() };
        let current = self.current().await?;
        self.admission().delete(&current, &write).await?;
        let delete =
            |state: &mut State| state.delete_with_contents(&self.kind, self.place(), &options, false, &write);
        let deletion = self.kubernetes.settled(&self.kind, delete).await?;
        let builtin = self.kind.builtin();
        if options.propagation == Propagation::Default && builtin.is_some_and(|kind| kind.orphans_dependents)
        {
            self.warnings.lock().push(format!(
                "child pods are preserved by default when {} are deleted; set propagationPolicy=Background to remove \
                 them or set propagationPolicy=Orphan to suppress this warning",
                self.kind.plural
            ));
        }
        Ok(match deletion {
            Deletion::Removed(last) if builtin.is_some_and(|kind| kind.deletion_returns_object) => {
                self.answer(StatusCode::OK, &last)
            }
            Deletion::Removed(last) => {
                let status = status::deleted(&self.kind, last.name(), last.uid());
                answer::json(StatusCode::OK, &status)
            }
            Deletion::Waiting(object) => self.answer(StatusCode::OK, &object),
        })
    }

    /// Whether the kind has this subresource.
    fn serves(&self, subresource: &str) -> bool {
        self.kind.subresource(subresource).is_some()
    }

    fn is_pod(&self) -> bool {
        *self.kind.shelf == *PODS
    }

    async fn bind(&self, bytes: &Bytes) -> Result<Response<Body>, ApiError> {
        let binding = self.other(bytes)?;
        let write = self.write();
        let binding = self.admission().connect(binding, &write).await?;
        let (namespace, name) = self.place();
        self.kubernetes.shared.state.lock().bind(&self.kind, namespace, name, &binding, &write)?;
        Ok(answer::json(StatusCode::CREATED, &status::done()))
    }

    async fn evict(&self, bytes: &Bytes) -> Result<Response<Body>, ApiError> {
        let eviction = self.other(bytes)?;
        let eviction = self.admission().connect(eviction, &self.write()).await?;
        let options = eviction.get("deleteOptions").unwrap_or(&Value::Null);
        let (options, dry_run) = body::options_of_deletion(&self.query, options)?;
        let write = Write { dry_run, ..self.write() };
        let (namespace, name) = self.place();
        self.kubernetes.shared.state.lock().evict(&self.kind, namespace, name, &options, &write)?;
        Ok(answer::json(StatusCode::CREATED, &status::done()))
    }

    async fn delete_collection(&self, bytes: &Bytes) -> Result<Response<Body>, ApiError> {
        let (options, dry_run) = body::delete_options(&self.headers, &self.query, bytes)?;
        let write = Write { dry_run, ..self.write() };
        let page = self.page().await?;
        // One after the other, as kube-apiserver does: after an error the remaining objects are kept.
        for object in &page.items {
            self.admission().delete(object, &write).await?;
            let place = (object.namespace(), object.name());
            let delete =
                |state: &mut State| state.delete_with_contents(&self.kind, place, &options, false, &write);
            match self.kubernetes.settled(&self.kind, delete).await {
                Ok(_) => {}
                // It was deleted with its owner, earlier in this collection.
                Err(error) if error.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
        let bytes = self.representation.list(&self.kind, &page, self.kubernetes.now());
        Ok(answer::bytes(StatusCode::OK, answer::JSON, bytes))
    }

    /// The `scale` subresource: `spec.replicas` as a kind of its own.
    async fn scale(&self, verb: &str, bytes: &Bytes) -> Result<Response<Body>, ApiError> {
        let (namespace, name) = self.place();
        let object = if verb == "get" {
            self.current().await?
        } else {
            let requested = |current: &Object| -> Result<Value, ApiError> {
                if verb == "update" {
                    return self.other(bytes);
                }
                let ((patch, _), how) =
                    body::patch(&self.headers, &self.query, self.kind.is_custom(), bytes)?;
                Ok(crate::patch::plain(
                    &crate::schema::ANYTHING,
                    Some(&scale::of(&self.kind, current)),
                    &patch,
                    &how,
                )?)
            };
            let write = self.write();
            let propose = |state: &mut State| {
                let current = state.get(&self.kind, namespace, name)?;
                let scale = requested(&current)?;
                state.propose_scale(&self.kind, &current, &scale, &write)
            };
            self.admission().write(&write, propose).await?.0
        };
        Ok(answer::json(StatusCode::OK, &scale::of(&self.kind, &object)))
    }
}
