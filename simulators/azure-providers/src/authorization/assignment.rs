//! Role assignments: which principal has which role at which scope. They lie on their scope and are deleted with it.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::changed::{times, touch};
use super::filter::{self, Term};
use super::protocol::protocol;
use super::role::{ASSIGNMENT_TYPE, assignable_at, id_in, no_such_role};
use crate::identity;
use azure_engine::document::{Object, into_object, take_properties, text};
use azure_engine::provider::{
    AzureState, Expand, Listing, Presenting, Proposal, Protocol, Record, Source, Writing,
};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::types::member_table::{Holds, Member};

pub(crate) struct RoleAssignments;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("assignment.json"),
    ..protocol(ASSIGNMENT_TYPE, "RoleAssignmentProperties")
};

const MEMBERS: [Member; 12] = [
    Member::new("roleDefinitionId", Holds::Anything),
    Member::new("principalId", Holds::Anything),
    Member::new("principalType", Holds::Word(&PRINCIPAL_TYPES, false)),
    Member::new("description", Holds::Anything),
    Member::new("condition", Holds::Anything),
    Member::new("conditionVersion", Holds::Anything),
    Member::new("delegatedManagedIdentityResourceId", Holds::Anything),
    Member::new("scope", Holds::Derived),
    Member::new("createdOn", Holds::Derived),
    Member::new("createdBy", Holds::Derived),
    Member::new("updatedOn", Holds::Derived),
    Member::new("updatedBy", Holds::Derived),
];

/// The type of a principal where the document gives none and the directory has no other kind.
const SERVICE_PRINCIPAL: &str = "ServicePrincipal";
const PRINCIPAL_TYPES: [&str; 5] = [SERVICE_PRINCIPAL, "User", "Group", "ForeignGroup", "Device"];

const EXISTS: Code = Code::azures(409, "RoleAssignmentExists");
const NO_SUCH_ROLE: Code = Code::ours(400, "RoleDefinitionDoesNotExist");

shape!(RoleAssignments, PROTOCOL, without Acting);

impl Writing for RoleAssignments {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        if proposal.source == Source::Patch {
            return Err(Refusal::method_not_allowed("PATCH"));
        }
        let mut properties = take_properties(&mut proposal.body);
        let scope = proposal.id.parent().unwrap_or_else(|| proposal.id.clone());
        let role = role(azure, &properties, &scope)?;
        properties.insert("roleDefinitionId".into(), role.as_str().into());
        let principal = properties.get("principalId").and_then(Value::as_str).unwrap_or_default().to_owned();
        Code::ours(400, "InvalidPrincipalId")
            .says_when(principal.is_empty(), "A role assignment names its principal (principalId).")?;
        match proposal.old {
            Some(old)
                if !(has(old, "principalId", &principal) && has(old, "roleDefinitionId", role.as_str())) =>
            {
                return Err(Code::azures(400, "RoleAssignmentUpdateNotPermitted").says(
                    "Tenant ID, application ID, principal ID, and scope are not allowed to be updated.",
                ));
            }
            Some(_) => {}
            None => check_new(azure, &scope, &principal, &role)?,
        }
        if !properties.contains_key("principalType") {
            if proposal.old.is_none() && !is_known(azure, &principal) {
                return Err(unknown_principal(azure, &scope, &principal));
            }
            properties.insert("principalType".into(), SERVICE_PRINCIPAL.into());
        }
        Ok(json!({ "properties": properties }))
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, _old: Option<&Value>) {
        touch(azure, id);
    }
}

impl Presenting for RoleAssignments {
    fn gather_list<'a>(&self, azure: &'a AzureState, scope: &ResourceId) -> Option<Vec<&'a Record>> {
        let subscription = ResourceId::subscription(scope.subscription_id());
        Some(azure.store.of_type_below(ASSIGNMENT_TYPE, &subscription))
    }

    fn before_list(&self, _azure: &AzureState, listing: &Listing<'_>) -> Result<()> {
        terms(listing).map(drop)
    }

    fn list_entry(&self, azure: &AzureState, record: &Record, listing: &Listing<'_>) -> Option<Value> {
        let assigned = record.id.parent()?;
        let (above, below) = (listing.scope.is_within(&assigned), assigned.is_within(listing.scope));
        let fits = |term: &Term<'_>| match term {
            Term::AtScope => above,
            Term::AtScopeAndBelow => true,
            Term::Is(member, wanted) => has(record, member, wanted),
        };
        let shown = (above || below) && terms(listing).ok()?.iter().all(fits);
        shown.then(|| azure.present(record, Expand::default()))
    }

    fn present(&self, _azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        times(record, document);
        if let (Some(Value::Object(properties)), Some(scope)) =
            (document.get_mut("properties"), record.id.parent())
        {
            properties.insert("scope".into(), scope.as_str().into());
        }
    }

    fn absence_refusal(&self, _azure: &AzureState, id: &ResourceId) -> Option<Refusal> {
        Some(
            Code::azures(404, "RoleAssignmentNotFound")
                .says(format_args!("The role assignment '{}' is not found.", id.name())),
        )
    }
}

/// Assigns a role to a principal at a scope, as a setup step outside requests. An existing assignment is no error.
///
/// # Errors
/// What Azure would refuse.
pub fn assign(azure: &mut AzureState, scope: &ResourceId, role: &str, object_id: &str) -> Result<()> {
    let name = azure.seed.guid("role assignment", &format!("{scope} {role} {object_id}"), 0);
    let id = scope.resource("Microsoft.Authorization", "roleAssignments", &name);
    let subscription = ResourceId::subscription(scope.subscription_id());
    let role = id_in(&subscription, role);
    let body = json!({ "properties": {
        "roleDefinitionId": role, "principalId": object_id, "principalType": SERVICE_PRINCIPAL,
    } });
    match azure.make(&id, into_object(body)) {
        Err(refusal) if refusal.code == EXISTS.code => Ok(()),
        made => made,
    }
}

fn terms<'a>(listing: &Listing<'a>) -> Result<Vec<Term<'a>>> {
    let filter = listing.query.get("$filter").map_or("", String::as_str);
    filter::parse(filter, &["principalId", "roleDefinitionId"])
}

fn has(record: &Record, member: &str, wanted: &str) -> bool {
    text(&record.body, &format!("properties/{member}")).is_some_and(|text| text.eq_ignore_ascii_case(wanted))
}

/// The id of the named role, which must exist and be assignable.
fn role(azure: &AzureState, properties: &Object, scope: &ResourceId) -> Result<ResourceId> {
    let named = properties.get("roleDefinitionId").and_then(Value::as_str).unwrap_or_default();
    let mut segments = named.rsplit('/');
    let name = segments.next().filter(|name| super::guid::is_guid(name));
    let kind = segments.next().filter(|kind| kind.eq_ignore_ascii_case("roleDefinitions"));
    let (Some(name), Some(_)) = (name, kind) else {
        return Err(Code::azures(400, "BadRequestFormat").says("The request was incorrectly formatted."));
    };
    let id = id_in(&ResourceId::subscription(scope.subscription_id()), name);
    match azure.store.get(&id).filter(|role| assignable_at(role, scope, false)) {
        Some(role) => Ok(role.id.clone()),
        None => Err(no_such_role(NO_SUCH_ROLE, name)),
    }
}

/// There is one assignment of a role to a principal on one scope, and only so many in a subscription.
fn check_new(azure: &AzureState, scope: &ResourceId, principal: &str, role: &ResourceId) -> Result<()> {
    let subscription = ResourceId::subscription(scope.subscription_id());
    let others = azure.store.of_type_below(ASSIGNMENT_TYPE, &subscription);
    let same = |other: &&&Record| {
        other.id.parent().as_ref() == Some(scope)
            && has(other, "principalId", principal)
            && has(other, "roleDefinitionId", role.as_str())
    };
    if let Some(other) = others.iter().find(same) {
        return Err(EXISTS.says(format_args!(
            "The role assignment already exists. The ID of the conflicting role assignment is {}.",
            other.id.name().replace('-', "")
        )));
    }
    Code::azures(400, "RoleAssignmentLimitExceeded").says_when(
        others.len() as u64 >= azure.limit("authorization.roleAssignmentsPerSubscription"),
        "No more role assignments can be created.",
    )
}

/// Whether the directory has a principal; without a directory every principal is known.
fn is_known(azure: &AzureState, principal: &str) -> bool {
    azure.principals.as_ref().is_none_or(|knows| knows(principal)) || identity::is_principal(azure, principal)
}

fn unknown_principal(azure: &AzureState, scope: &ResourceId, principal: &str) -> Refusal {
    Code::azures(400, "PrincipalNotFound").says(format_args!(
        "Principal {} does not exist in the directory {}. Check that you have the correct principal ID. If you are \
         creating this principal and then immediately assigning a role, this error might be related to a replication \
         delay. In this case, set the role assignment principalType property to a value, such as ServicePrincipal, \
         User, or Group. See https://aka.ms/docs-principaltype",
        principal.replace('-', ""),
        azure.tenant_of(scope.subscription_id())
    ))
}
