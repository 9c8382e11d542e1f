//! Query parameters (Kubernetes API reference: "Common Parameters").

use axum::extract::Query as Pairs;
use http::{Method, Uri};
use serde_json::Value;

use crate::fault::Lag;
use crate::status::ApiError;
use crate::verbs::VersionMatch;

/// The handling of unknown members; the default is that of servers since 1.27.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum UnknownMembers {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// Maximum length of a field manager's name.
const MAX_MANAGER_BYTES: usize = 128;

/// The parameters that have an effect. Others, such as `pretty`, are accepted.
#[derive(Debug, Clone, Default)]
pub(super) struct Query {
    pub(super) watch: bool,
    pub(super) label_selector: String,
    pub(super) field_selector: String,
    pub(super) limit: Option<usize>,
    pub(super) token: Option<String>,
    pub(super) resource_version: Option<u64>,
    pub(super) version_match: Option<VersionMatch>,
    pub(super) timeout_seconds: Option<u64>,
    pub(super) bookmarks: bool,
    pub(super) send_initial_events: bool,
    pub(super) dry_run: bool,
    pub(super) field_manager: Option<String>,
    pub(super) unknown: UnknownMembers,
    pub(super) force: Option<bool>,
    pub(super) include_object: Option<String>,
    pub(super) propagation_policy: Option<String>,
    pub(super) orphan_dependents: Option<bool>,
    pub(super) grace_period: Option<u64>,
    /// The lag of the cache, because of a fault.
    pub(super) stale: Option<Lag>,
}

impl Query {
    pub(super) fn parse(method: &Method, text: &str) -> Result<Self, ApiError> {
        let uri: Uri = format!("/?{text}").parse().map_err(|_| ApiError::bad_request("malformed query"))?;
        let Pairs(pairs) = Pairs::<Vec<(String, String)>>::try_from_uri(&uri)
            .map_err(|error| ApiError::bad_request(format!("malformed query: {error}")))?;
        let options = match *method {
            Method::POST => "CreateOptions",
            Method::PUT => "UpdateOptions",
            Method::PATCH => "PatchOptions",
            Method::DELETE => "DeleteOptions",
            _ => "ListOptions",
        };
        let mut query = Self::default();
        for (name, value) in pairs {
            query.set(options, &name, value)?;
        }
        query.check(options)?;
        Ok(query)
    }

    /// Validates combinations of parameters.
    fn check(&self, options: &str) -> Result<(), ApiError> {
        let invalid = |field: &str, message: &str| Err(ApiError::invalid_option(options, field, message));
        let query = self;
        if query.token.is_some() && query.resource_version.is_some_and(|version| version != 0) {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        const MATCH: &str = "resourceVersionMatch";
        if query.version_match.is_some() && query.resource_version.is_none() && !query.send_initial_events {
            let message = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
            return invalid(MATCH, message);
        }
        if query.version_match == Some(VersionMatch::Exact) && query.resource_version == Some(0) {
            let message = "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            return invalid(MATCH, message);
        }
        if query.send_initial_events && !query.watch {
            return invalid("sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list");
        }
        if query.send_initial_events && query.version_match != Some(VersionMatch::NotOlderThan) {
            let message =
                "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            return invalid(MATCH, message);
        }
        Ok(())
    }

    fn set(&mut self, options: &str, name: &str, value: String) -> Result<(), ApiError> {
        let invalid = |field: &str, message: &str| ApiError::invalid_option(options, field, message);
        let number = |value: &str| {
            value
                .parse::<u64>()
                .map_err(|_| ApiError::bad_request(format!("{name}: invalid number {value:?}")))
        };
        match name {
            "watch" => self.watch = truth(&value),
            "labelSelector" => self.label_selector = value,
            "fieldSelector" => self.field_selector = value,
            "gracePeriodSeconds" => self.grace_period = Some(number(&value)?),
            "limit" if value.starts_with('-') => {}
            "limit" => {
                self.limit = Some(number(&value)?).filter(|n| *n > 0).and_then(|n| usize::try_from(n).ok())
            }
            "continue" if !value.is_empty() => self.token = Some(value),
            "resourceVersion" if !value.is_empty() => {
                let parsed = value.parse();
                self.resource_version = Some(parsed.map_err(|_| {
                    ApiError::bad_request(format!(
                        "invalid resource version: {value:?} is no unsigned integer"
                    ))
                })?);
            }
            "resourceVersionMatch" if !value.is_empty() => {
                self.version_match = Some(match value.as_str() {
                    "Exact" => VersionMatch::Exact,
                    "NotOlderThan" => VersionMatch::NotOlderThan,
                    _ => {
                        let message = format!(
                            "Unsupported value: {value:?}: supported values: \"Exact\", \"NotOlderThan\", \"\""
                        );
                        return Err(invalid("resourceVersionMatch", &message));
                    }
                });
            }
            "timeoutSeconds" => self.timeout_seconds = Some(number(&value)?).filter(|seconds| *seconds > 0),
            "allowWatchBookmarks" => self.bookmarks = truth(&value),
            "sendInitialEvents" => self.send_initial_events = truth(&value),
            "dryRun" => match value.as_str() {
                "" => {}
                "All" => self.dry_run = true,
                _ => {
                    let message =
                        format!("Unsupported value: []string{{{value:?}}}: supported values: \"All\"");
                    return Err(invalid("dryRun", &message));
                }
            },
            "fieldManager" if value.len() > MAX_MANAGER_BYTES => {
                let message = format!("Too long: may not be more than {MAX_MANAGER_BYTES} bytes");
                return Err(invalid("fieldManager", &message));
            }
            "fieldManager" if value.contains(char::is_control) => {
                let value = Value::from(value);
                let message = format!("Invalid value: {value}: should only contain printable characters");
                return Err(invalid("fieldManager", &message));
            }
            "fieldManager" if !value.is_empty() => self.field_manager = Some(value),
            "fieldValidation" => {
                self.unknown = match value.as_str() {
                    "" | "Warn" => UnknownMembers::Warn,
                    "Ignore" => UnknownMembers::Ignore,
                    "Strict" => UnknownMembers::Strict,
                    _ => {
                        let message = format!(
                            "Unsupported value: {value:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
                        );
                        return Err(invalid("fieldValidation", &message));
                    }
                };
            }
            "force" => self.force = Some(truth(&value)),
            "includeObject" => self.include_object = Some(value),
            "propagationPolicy" => self.propagation_policy = Some(value),
            "orphanDependents" => self.orphan_dependents = Some(truth(&value)),
            _ => {}
        }
        Ok(())
    }
}

fn truth(value: &str) -> bool {
    !matches!(value, "false" | "0")
}
