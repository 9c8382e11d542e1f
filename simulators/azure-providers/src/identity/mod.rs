//! `Microsoft.ManagedIdentity`: user-assigned identities and their federated credentials, the identities of resources,
//! and what a directory must know of either.

mod assignment;
mod directory;
mod federated_credential;
mod ids;
mod protocol;
mod user_assigned;

use serde_json::json;

pub use self::assignment::{ManagedIdentity, assigned};
pub(crate) use self::directory::is_principal;
pub use self::directory::{DirectoryIdentity, Holder, Trusted, find, holders};

use self::ids::Ids;
use azure_engine::answer::Answer;
use azure_engine::provider::{AzureState, EnvelopeMember, ExtensionRequest, Provider};
use azure_engine::refusal::{Code, Handled, Refusal};
use azure_engine::settings::limits::Limit;
use azure_engine::types::join::Join;
use azure_engine::types::names::NameRule;

pub(crate) fn provider() -> Provider {
    Provider {
        extensions: vec![own_identity],
        limits: LIMITS,
        names: NAMES,
        envelope: &ENVELOPE,
        joins: &JOINS,
        ..Provider::new(
            "Microsoft.ManagedIdentity",
            vec![&user_assigned::UserAssignedIdentities, &federated_credential::FederatedCredentials],
        )
    }
}

static ENVELOPE: [EnvelopeMember; 1] = [EnvelopeMember {
    name: "identity",
    check: assignment::check_identity,
    present: assignment::present_identity,
}];

/// Resources of all providers have identities.
static JOINS: [Join; 1] = [Join {
    of: "*",
    members: &["userAssignedIdentities"],
    action: "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action",
}];

static LIMITS: &[Limit] = &[Limit::of("managedIdentity.federatedCredentialsPerIdentity", 20)];

static NAMES: &[NameRule] = &[
    NameRule {
        of: "*/federatedIdentityCredentials",
        fits: |name| fits(name, 3, 120),
        refusal: |_, name| bad_name(name, 3, 120),
    },
    NameRule { of: "*", fits: |name| fits(name, 3, 128), refusal: |_, name| bad_name(name, 3, 128) },
];

fn fits(name: &str, shortest: usize, longest: usize) -> bool {
    (shortest..=longest).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

fn bad_name(name: &str, shortest: usize, longest: usize) -> Refusal {
    Code::azures(400, "InvalidResourceName").says(format_args!(
            "The resource name '{name}' is invalid. It must begin with a letter or digit, hold only letters, digits, '-' \
             and '_', and be {shortest} to {longest} characters long."
        ),
    )
}

/// `{scope}/providers/Microsoft.ManagedIdentity/identities/default`: the identity of a resource itself.
fn own_identity(azure: &mut AzureState, request: &ExtensionRequest<'_>) -> Handled<Answer> {
    let [kind, name] = request.segments else { return None };
    if !kind.eq_ignore_ascii_case("identities") || !name.eq_ignore_ascii_case("default") {
        return None;
    }
    if request.method != "GET" {
        return Some(Err(Refusal::method_not_allowed(request.method)));
    }
    let Some(record) = azure.store.get(request.scope).filter(|record| assignment::is_own(&record.body))
    else {
        let text = format!("The resource '{}' has no identity of its own.", request.scope);
        return Some(Err(Code::azures(404, "NotFound").says(text)));
    };
    let ids = Ids::of(azure, &record.id, record.incarnation);
    Some(Ok(Answer::ok(json!({
        "id": format!("{}/providers/Microsoft.ManagedIdentity/identities/default", record.id),
        "name": "default",
        "type": "Microsoft.ManagedIdentity/identities",
        "location": azure.location(&record.id),
        "properties": {
            "tenantId": azure.tenant_of(record.id.subscription_id()),
            "principalId": ids.principal,
            "clientId": ids.client,
        },
    }))))
}
