//! From a request to an answer: version rules, faults, budgets, then the target.

use azure_types::ResourceId;
use serde_json::Value;

use crate::answer::Answer;
use crate::operation::execution::Execution;
use crate::operation::{OperationStyle, OperationUrls};
use crate::provider::{Answers, AzureState, Extends, ExtensionRequest, ProviderCall, ResourceRequest};
use crate::refusal::{Code, Handled, Refusal, Result};
use crate::request::Request;
use crate::request::target::{self, BadPath, Scope, Target};
use crate::types::protocol::UrlForm;
use crate::types::version;
use crate::verbs::resolve::Resolved;

/// The subject of a request, found before it is performed.
#[derive(Clone)]
pub struct Located {
    /// The target of its path.
    pub target: Target,
    /// The resource or list, where the path names one.
    pub resolved: Option<Resolved>,
    /// The full type.
    pub resource_type: String,
    /// Whether it asks for an operation.
    pub poll: bool,
    /// Why the path names no resource; a provider may answer it all the same.
    pub unresolved: Option<Refusal>,
}

impl Located {
    /// The id of the resource, where the request is about one.
    pub fn resource(&self) -> Option<String> {
        if let Target::Within(subscription, Scope::Group(name)) = &self.target {
            return Some(ResourceId::group(subscription, name).to_string());
        }
        let resolved = self.resolved.as_ref().filter(|resolved| !resolved.list)?;
        let below: String = resolved.below.iter().map(|segment| format!("/{segment}")).collect();
        Some(format!("{}{below}", resolved.id))
    }
}

impl AzureState {
    /// Finds the subject of a request.
    pub fn locate(&self, request: &Request<'_>) -> Result<Located> {
        let version = request.query.get("api-version").map(String::as_str).unwrap_or_default();
        let own_versions = || self.manager.api_versions().join(",");
        let invalid_version = || {
            Code::azures(400, "InvalidApiVersionParameter").says(format_args!(
                "The api-version '{version}' is invalid. The supported versions are '{}'.",
                own_versions()
            ))
        };
        let target = request.target.map_err(|bad| match bad {
            BadPath::Unknown => Code::ours(404, "InvalidRequestPath")
                .says(format_args!("The request path '{}' is not one of Resource Manager.", request.path)),
            // ARM answers an empty segment like an invalid version.
            BadPath::EmptySegment => invalid_version(),
            BadPath::BadCharacter => Code::azures(400, "InvalidResourceName").says(
                "The resource name or path holds characters that are not allowed: < > % & : \\ ? / \
             and control characters.",
            ),
        })?;
        Code::azures(400, "MissingApiVersionParameter").says_when(
            version.is_empty(),
            "The api-version query parameter (?api-version=) is required for all requests.",
        )?;
        let Target::Within(subscription, scope) = target else {
            if !version::known(version, self.time()) {
                return Err(invalid_version());
            }
            return Ok(Located {
                resource_type: self.manager.type_of(target).into(),
                target: target.clone(),
                resolved: None,
                poll: false,
                unresolved: None,
            });
        };
        let subscription = self.subscription(subscription).ok_or_else(|| {
            Code::azures(404, "SubscriptionNotFound")
                .says(format_args!("The subscription '{subscription}' could not be found."))
        })?;
        let (resource_type, resolved, poll) = match scope {
            Scope::Resource(group, namespace, segments) => {
                let resolved =
                    match self.resolve(subscription, group.as_deref(), namespace, segments, version) {
                        Ok(resolved) => resolved,
                        Err(refusal) if self.namespace(namespace).is_some() => {
                            let first = segments.first().map_or("", String::as_str);
                            return Ok(Located {
                                resource_type: format!("{namespace}/{first}"),
                                target: Target::Within(subscription.to_owned(), scope.clone()),
                                resolved: None,
                                poll: false,
                                unresolved: Some(refusal),
                            });
                        }
                        Err(refusal) => return Err(refusal),
                    };
                self.check_version(&resolved, version)?;
                (resolved.full_type.clone(), Some(resolved), false)
            }
            Scope::Operation(namespace, ..) => {
                let name = self.namespace(namespace).unwrap_or(namespace);
                (format!("{name}/locations/operations"), None, true)
            }
            Scope::GroupOperation(_) => (self.manager.type_of(target).into(), None, true),
            Scope::Extension(extension) => {
                let first = extension.below.first().map_or("", String::as_str);
                let namespace =
                    self.namespace(&extension.by).ok_or_else(|| Refusal::unknown_namespace(&extension.by))?;
                if !version::known(version, self.time()) {
                    return Err(invalid_version());
                }
                let full_type = format!("{namespace}/{first}");
                match self.resource_type(&full_type) {
                    None => (full_type, None, false),
                    Some(_) => {
                        let (_, scope) = self.extended(subscription, extension)?;
                        let resolved = self.resolve_in(&scope, namespace, &extension.below, version)?;
                        self.check_version(&resolved, version)?;
                        (resolved.full_type.clone(), Some(resolved), false)
                    }
                }
            }
            _ => {
                let known = self.manager.api_versions().contains(&version);
                if !version::known(version, self.time()) || (self.options.strict_api_versions && !known) {
                    return Err(invalid_version());
                }
                (self.manager.type_of(target).into(), None, false)
            }
        };
        Ok(Located {
            target: Target::Within(subscription.to_owned(), scope.clone()),
            resolved,
            resource_type,
            poll,
            unresolved: None,
        })
    }

    /// Performs a request.
    pub fn perform(
        &mut self,
        request: &Request<'_>,
        located: &Located,
        execution: &Execution,
    ) -> Result<Answer> {
        let method = if request.method == "HEAD" { "GET" } else { request.method };
        let Target::Within(subscription, scope) = &located.target else {
            return self.manager.perform(self, request, &located.target, execution);
        };
        match (method, scope) {
            (method, Scope::Extension(extension)) => {
                let (on, scope) = self.extended(subscription, extension)?;
                self.require(&on)?;
                if !on.below.is_empty() && self.document(&scope).is_none() {
                    return Err(self.not_found(&scope));
                }
                if let Some(resolved) = &located.resolved {
                    return self.operate(request, resolved, execution);
                }
                let body = request.body.optional()?;
                let segments: Vec<&str> = extension.below.iter().map(String::as_str).collect();
                let extension_request = ExtensionRequest {
                    method,
                    scope: &scope,
                    segments: &segments,
                    body,
                    caller: request.caller,
                };
                self.extend(&extension.by, &extension_request).unwrap_or_else(|| {
                    let first = extension.below.first().map_or("", String::as_str);
                    Err(Refusal::unknown_type(&extension.by, first, ""))
                })
            }
            ("GET", Scope::Operation(_, key, result)) => {
                let monitor =
                    request.query.get("monitor").is_some_and(|value| value.eq_ignore_ascii_case("true"));
                self.poll(subscription, key, *result || monitor)
            }
            ("GET", Scope::GroupOperation(key)) => {
                let answer = self.poll(subscription, key, true)?;
                Ok(if answer.status == 204 { Answer::empty(200) } else { answer })
            }
            (method, Scope::Resource(group, namespace, segments)) => {
                let Some(resolved) = &located.resolved else {
                    let body = request.body.optional()?;
                    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
                    let group = group.as_deref();
                    if let Some(group) = group {
                        self.require_group(&ResourceId::group(subscription, group))?;
                    }
                    let call = ProviderCall {
                        method,
                        subscription,
                        group,
                        segments: &segments,
                        query: request.query,
                        body,
                    };
                    if let Some(answer) = self.call(namespace, &call) {
                        return answer;
                    }
                    let scope = match group {
                        Some(group) => self.group_id(subscription, group),
                        None => ResourceId::subscription(subscription),
                    };
                    let extension_request = ExtensionRequest {
                        method,
                        scope: &scope,
                        segments: &segments,
                        body,
                        caller: request.caller,
                    };
                    return self.extend(namespace, &extension_request).unwrap_or_else(|| {
                        let refusal = located.unresolved.clone();
                        Err(refusal.unwrap_or_else(|| Refusal::method_not_allowed(method)))
                    });
                };
                self.operate(request, resolved, execution)
            }
            (other, Scope::Operation(..) | Scope::GroupOperation(_)) => {
                Err(Refusal::method_not_allowed(other))
            }
            _ => self.manager.perform(self, request, &located.target, execution),
        }
    }

    /// Performs a request about a resource or list.
    fn operate(
        &mut self,
        request: &Request<'_>,
        resolved: &Resolved,
        execution: &Execution,
    ) -> Result<Answer> {
        let method = if request.method == "HEAD" { "GET" } else { request.method };
        let namespace = resolved.full_type.split('/').next().unwrap_or_default();
        if !matches!(method, "GET" | "DELETE") {
            self.manager.check_registered(self, resolved.id.subscription_id(), namespace)?;
        }
        if method != "GET" {
            self.check_guards(method, &resolved.named_id())?;
        }
        if let Some(answer) = self.answer_options(request, resolved, method) {
            return answer;
        }
        let mut answer = match method {
            // HEAD: whether a resource exists.
            "GET" if request.method == "HEAD" && !resolved.list => {
                self.read(resolved, request.query).map(|_| Answer::empty(204))
            }
            "GET" => self.read(resolved, request.query),
            "PUT" => self.put(resolved, request.body.document()?.clone(), request.conditions, execution),
            "PATCH" => self.patch(resolved, request.body.document()?.clone(), request.conditions, execution),
            "DELETE" => self.delete(resolved, request.conditions, execution),
            "POST" => self.act(resolved, request.body.optional()?, execution),
            other => Err(Refusal::method_not_allowed(other)),
        }?;
        if resolved.below.is_empty() && method != "POST" {
            let version = request.query.get("api-version").map(String::as_str).unwrap_or_default();
            self.shape(resolved, version, &mut answer);
        }
        Ok(answer)
    }

    /// Checks the guards of all providers before a change.
    ///
    /// # Errors
    /// The refusal of a guard.
    pub fn check_guards(&self, method: &str, about: &ResourceId) -> Result<()> {
        let mut guards = self.providers.iter().flat_map(|provider| provider.guards);
        guards.try_for_each(|guard| guard(self, method, about))
    }

    /// The type's own answer to a request with query options, or about an absent resource.
    fn answer_options(
        &mut self,
        request: &Request<'_>,
        resolved: &Resolved,
        method: &str,
    ) -> Handled<Answer> {
        let answers_every_request = resolved.resource_type.protocol().answers_every_request;
        if request.query.len() < 2 && method != "POST" && !answers_every_request {
            return None;
        }
        let body = request.body.readable().unwrap_or(&Value::Null);
        let request = ResourceRequest {
            method,
            id: &resolved.id,
            list: resolved.list,
            below: &resolved.below,
            query: request.query,
            body,
        };
        resolved.resource_type.answer_request(self, &request)
    }

    /// Checks that a type has an API version.
    fn check_version(&self, resolved: &Resolved, version: &str) -> Result<()> {
        let versions = resolved.resource_type.protocol().api_versions;
        if !version::known(version, self.time())
            || (self.options.strict_api_versions && !versions.contains(&version))
        {
            let region = &self.options.region;
            return Err(Code::azures(400, "NoRegisteredProviderFound").says(format_args!(
                    "No registered resource provider found for location '{region}' and API version '{version}' for \
                     type '{}'. The supported api-versions are '{}'. The supported locations are '{region}'.",
                    resolved.full_type.split_once('/').map_or("", |(_, name)| name),
                    versions.join(", ")
                ),
            ));
        }
        Ok(())
    }

    /// The scope of an extension, whether or not it exists: the resource, and the id of that or of a child in it.
    fn extended(&self, subscription: &str, extension: &target::Extension) -> Result<(Resolved, ResourceId)> {
        let group = extension.group.as_deref();
        let on = self.resolve(subscription, group, &extension.namespace, &extension.segments, "")?;
        if on.list {
            return Err(self.not_found(&on.id));
        }
        let scope = on.named_id();
        Ok((on, scope))
    }

    /// The provider's answer to a call beside its resources.
    fn call(&mut self, namespace: &str, call: &ProviderCall<'_>) -> Handled<Answer> {
        let calls = self.providers_of(namespace).flat_map(|provider| provider.calls.clone());
        let calls: Vec<Answers> = calls.collect();
        calls.into_iter().find_map(|answers| answers(self, call)).map(|answer| answer.map(Answer::ok))
    }

    /// The provider's answer about its extensions of other resources.
    fn extend(&mut self, namespace: &str, request: &ExtensionRequest<'_>) -> Handled<Answer> {
        let extensions = self.providers_of(namespace).flat_map(|provider| provider.extensions.clone());
        let extensions: Vec<Extends> = extensions.collect();
        extensions.into_iter().find_map(|extends| extends(self, request))
    }

    /// The URLs of an operation: (`Azure-AsyncOperation`, `Location`).
    pub fn operation_urls(
        &self,
        base: &str,
        subscription: &str,
        version: &str,
        links: &crate::answer::OperationLinks,
        operation_style: OperationStyle,
    ) -> (Option<String>, Option<String>) {
        let (key, namespace, location, segment) =
            (&links.key, &links.namespace, &links.location, links.segment);
        // The status URL always exists; the result URL is optional, or given in its place.
        let (with_status, with_result) = match operation_style.urls {
            None => (true, links.result_url),
            Some(OperationUrls::AsyncOperation) => (true, false),
            Some(OperationUrls::Location) => (false, true),
            Some(OperationUrls::Both) => (true, true),
            Some(OperationUrls::Neither) => return (None, None),
        };
        match links.urls {
            UrlForm::Job => (
                None,
                Some(format!(
                    "{base}/subscriptions/{subscription}/operationresults/{key}?api-version={version}"
                )),
            ),
            UrlForm::Nowhere => (None, None),
            UrlForm::Final => {
                let url = format!(
                    "{base}/subscriptions/{subscription}/providers/{namespace}/locations/{location}/{segment}/{key}\
                     ?monitor=true&api-version={version}"
                );
                (None, Some(url))
            }
            UrlForm::InGroup(status, result) => {
                let group = links.group.as_deref().unwrap_or_default();
                let at = |kind: &str| {
                    format!(
                        "{base}/subscriptions/{subscription}/resourceGroups/{group}/providers/{namespace}/{kind}/{key}\
                         ?api-version={version}"
                    )
                };
                (with_status.then(|| at(status)), with_result.then(|| at(result)))
            }
            UrlForm::Apart => {
                let at = |kind: &str| {
                    format!(
                        "{base}/subscriptions/{subscription}/providers/{namespace}/locations/{location}/{kind}/{key}\
                         ?api-version={version}"
                    )
                };
                (with_status.then(|| at(segment)), with_result.then(|| at("operationResults")))
            }
            UrlForm::Monitor => {
                let tracking = self.seed.guid("tracking", key, 0);
                let url = format!(
                    "{base}/subscriptions/{subscription}/providers/{namespace}/locations/{location}/{segment}/{key}\
                     ?p={tracking}&api-version={version}"
                );
                let result = with_result.then(|| format!("{url}&monitor=true"));
                (with_status.then_some(url), result)
            }
        }
    }
}
