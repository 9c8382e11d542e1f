//! An Azure that refuses writes with parts of bad Services.

use azure_simulator::{Azure, Fault, FaultAction};
use parking_lot::Mutex;
use serde_json::{Value, json};
use testkit::types::{LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS};
use testkit::{Call, Reply, Tap};

use super::case::{Bad, Refusal};

/// The prefix of the error codes of its failed operations.
const CODE: &str = "InternalServerError";

/// A bad Service.
#[derive(Debug, Clone)]
pub(super) struct Culprit {
    pub(super) bad: Bad,
    /// The base name in the names of its resources.
    pub(super) base_name: String,
}

/// Refuses writes with parts of bad Services.
#[derive(Debug, Default)]
pub(super) struct Refuser(Mutex<Option<(Azure, Vec<Culprit>)>>);

impl Refuser {
    /// Starts to refuse writes for this Service.
    pub(super) fn refuse(&self, azure: &Azure, culprit: Culprit) {
        self.0.lock().get_or_insert_with(|| (azure.clone(), Vec::new())).1.push(culprit);
    }
}

impl Culprit {
    /// The refusal of a write, and what its text names.
    fn refusal(
        &self,
        azure: &Azure,
        kind: &str,
        call: &Call,
        body: &str,
    ) -> Option<(Refusal, Option<String>)> {
        let is = |wanted: &str| kind.eq_ignore_ascii_case(wanted);
        let holds = |part: &str| body.contains(part);
        let id = call.resource.as_ref()?;
        match self.bad {
            Bad::Address(refusal) => (is(PUBLIC_IPS) && id.name().contains(&self.base_name)).then(|| {
                let text = id.to_string();
                (refusal, Some(text))
            }),
            Bad::Balancer { refusal, named } => (is(LOAD_BALANCERS) && holds(&self.base_name)).then(|| {
                let frontend = format!("{id}/frontendIPConfigurations/{}", self.base_name);
                (refusal, named.then_some(frontend))
            }),
            Bad::Guard { refusal, named } => {
                let addresses = azure.documents_of_type(PUBLIC_IPS);
                let mine = addresses
                    .iter()
                    .find(|one| one["name"].as_str().is_some_and(|name| name.contains(&self.base_name)));
                let address = mine.and_then(|one| one["properties"]["ipAddress"].as_str())?;
                (is(SECURITY_GROUPS) && holds(&format!("\"{address}\"")))
                    .then(|| (refusal, named.then(|| address.to_owned())))
            }
            Bad::Mistake(_) => None,
        }
    }
}

impl Tap for Refuser {
    fn before(&self, call: &Call) -> Option<Reply> {
        if call.method != "PUT" {
            return None;
        }
        let refusing = self.0.lock();
        let (azure, culprits) = refusing.as_ref()?;
        let id = call.resource.as_ref()?;
        let kind = id.resource_type();
        let body = String::from_utf8_lossy(&call.body);
        let refusal = culprits.iter().find_map(|one| one.refusal(azure, &kind, call, &body))?;
        let inject = |action| {
            let fault = Fault::new(action).on_method("PUT").on_type(&kind).on_resource(id.name()).times(1);
            azure.inject(fault);
            None
        };
        match refusal {
            (Refusal::Later, named) => {
                let message = format!("The operation failed. {}", named.unwrap_or_default());
                inject(FaultAction::FailOperation { code: CODE.to_owned(), message })
            }
            (Refusal::Status(429), _) => inject(FaultAction::Throttle { retry_after: Some(7) }),
            (Refusal::Linked, named) => {
                let linked = named.map(|named| format!(" '{named}'")).unwrap_or_default();
                let text = format!(
                    "The client '0b1ec700' has permission to perform action '{kind}/write' on scope '{id}'; however, it \
                     does not have permission to perform action(s) 'join/action' on the linked scope(s){linked} (respectively) \
                     or the linked scope(s) are invalid."
                );
                Some(reply(403, "LinkedAuthorizationFailed", &text))
            }
            (Refusal::Status(status), named) => {
                let code = match status {
                    400 => "InvalidRequestFormat",
                    403 => "AuthorizationFailed",
                    404 => "ResourceNotFound",
                    409 => "Conflict",
                    412 => "PreconditionFailed",
                    503 => "ServiceUnavailable",
                    _ => "InternalServerError",
                };
                let text = format!("The request is refused by this test. {}", named.unwrap_or_default());
                Some(reply(status, code, &text))
            }
        }
    }
}

fn reply(status: u16, code: &str, message: &str) -> Reply {
    let body: Value = json!({"error": {"code": code, "message": message}});
    Reply { status, body }
}
