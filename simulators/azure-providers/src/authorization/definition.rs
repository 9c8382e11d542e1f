//! Roles: the built-in ones, and those that a subscription makes for itself. They are kept in the subscription, and can
//! be asked for below everything in it.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::changed::{times, touch};
use super::filter::{self, Term};
use super::protocol::protocol;
use super::role::{
    ASSIGNMENT_TYPE, CUSTOM, DEFINITION_TYPE, assignable_at, definition_of, id_in, is_built_in, no_such_role,
};
use azure_engine::document::{Object, fill, items, take_properties, text};
use azure_engine::provider::{
    Acting, AzureState, Expand, Listing, Presenting, Proposal, Protocol, Record, Shape, Writing,
};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::types::member_table::{Holds, Member};

pub(crate) struct RoleDefinitions;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("definition.json"),
    // "Role Definitions - Create Or Update" knows no other status.
    update_status: 201,
    ..protocol(DEFINITION_TYPE, "RoleDefinitionProperties")
};

const MEMBERS: [Member; 9] = [
    Member::new("roleName", Holds::Anything),
    Member::new("description", Holds::Anything),
    Member::new("type", Holds::Constant(CUSTOM)),
    Member::new("permissions", Holds::Anything),
    Member::new("assignableScopes", Holds::Anything),
    Member::new("createdOn", Holds::Derived),
    Member::new("createdBy", Holds::Derived),
    Member::new("updatedOn", Holds::Derived),
    Member::new("updatedBy", Holds::Derived),
];

/// The lists of a permission.
const LISTS: [&str; 4] = ["actions", "notActions", "dataActions", "notDataActions"];
/// What the names of actions end with.
const VERBS: [&str; 4] = ["read", "write", "delete", "action"];

const DOES_NOT_EXIST: Code = Code::azures(404, "RoleDefinitionDoesNotExist");

impl Shape for RoleDefinitions {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn stands_for(&self, _azure: &AzureState, id: &ResourceId) -> Option<ResourceId> {
        Some(id_in(&ResourceId::subscription(id.subscription_id()), id.name()))
    }
}

impl Writing for RoleDefinitions {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        if proposal.old.is_some_and(is_built_in) {
            return Err(built_in_fixed(proposal.id));
        }
        let mut properties = take_properties(&mut proposal.body);
        let permissions = properties.remove("permissions").map(permissions).transpose()?.unwrap_or_default();
        properties.insert("permissions".into(), permissions.into());
        fill(&mut properties, "description", "");
        let value = Value::Object(properties);
        check_name(azure, proposal.id, text(&value, "roleName").unwrap_or_default())?;
        check_scopes(azure, proposal.id, items(&value, "assignableScopes"))?;
        let most = azure.limit("authorization.customRolesPerDirectory");
        Code::azures(400, "RoleDefinitionLimitExceeded").says_when(
            proposal.old.is_none() && customs(azure).count() as u64 >= most,
            "Role definition limit exceeded. No more role definitions can be created.",
        )?;
        Ok(json!({ "properties": value }))
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, _old: Option<&Value>) {
        touch(azure, id);
    }

    fn before_delete(&self, azure: &AzureState, record: &Record) -> Result<()> {
        if is_built_in(record) {
            return Err(built_in_fixed(&record.id));
        }
        let mut assignments = azure.store.of_type(ASSIGNMENT_TYPE);
        let assigned =
            |assignment: &Record| definition_of(azure, assignment).is_some_and(|role| role.id == record.id);
        Code::azures(400, "RoleDefinitionHasAssignments")
            .says_when(assignments.any(assigned), "There are existing role assignments referencing role.")
    }
}

impl Presenting for RoleDefinitions {
    fn gather_list<'a>(&self, azure: &'a AzureState, scope: &ResourceId) -> Option<Vec<&'a Record>> {
        let subscription = ResourceId::subscription(scope.subscription_id());
        Some(azure.store.of_type_below(self.name(), &subscription))
    }

    fn before_list(&self, _azure: &AzureState, listing: &Listing<'_>) -> Result<()> {
        terms(listing).map(drop)
    }

    fn list_entry(&self, azure: &AzureState, record: &Record, listing: &Listing<'_>) -> Option<Value> {
        let terms = terms(listing).ok()?;
        let below = terms.contains(&Term::AtScopeAndBelow);
        let fits = |term: &Term<'_>| match term {
            Term::AtScope | Term::AtScopeAndBelow => true,
            Term::Is(member, wanted) => text(&record.body, &format!("properties/{member}"))
                .is_some_and(|text| text.eq_ignore_ascii_case(wanted)),
        };
        let shown = assignable_at(record, listing.scope, below) && terms.iter().all(fits);
        shown.then(|| azure.present(record, Expand::default()))
    }

    fn present(&self, _azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        times(record, document);
    }

    fn absence_refusal(&self, _azure: &AzureState, id: &ResourceId) -> Option<Refusal> {
        Some(no_such_role(DOES_NOT_EXIST, id.name()))
    }
}

impl Acting for RoleDefinitions {}

fn terms<'a>(listing: &Listing<'a>) -> Result<Vec<Term<'a>>> {
    let filter = listing.query.get("$filter").map_or("", String::as_str);
    filter::parse(filter, &["roleName", "type"])
}

fn customs(azure: &AzureState) -> impl Iterator<Item = &Record> {
    azure.store.of_type(DEFINITION_TYPE).filter(|record| !is_built_in(record))
}

fn built_in_fixed(id: &ResourceId) -> Refusal {
    Code::ours(403, "BuiltInRoleCannotBeChanged")
        .says(format_args!("The role '{}' is built in and cannot be changed.", id.name()))
}

/// Names of roles are unique in a directory.
fn check_name(azure: &AzureState, id: &ResourceId, name: &str) -> Result<()> {
    Code::ours(400, "RoleDefinitionNameMissing")
        .says_when(name.is_empty(), "The role definition has no name (roleName).")?;
    let tenant = |id: &ResourceId| azure.tenant_of(id.subscription_id()).to_owned();
    let same = |record: &&Record| {
        record.id.name() != id.name()
            && tenant(&record.id) == tenant(id)
            && text(&record.body, "properties/roleName").is_some_and(|taken| taken.eq_ignore_ascii_case(name))
    };
    match azure.store.of_type(DEFINITION_TYPE).find(same) {
        Some(_) => Err(Code::azures(409, "RoleDefinitionWithSameNameExists").says(
            "A custom role with the same name already exists in this directory. Use a different name.",
        )),
        None => Ok(()),
    }
}

/// A role of one's own can be assigned in the subscription that holds it, or in groups of it.
fn check_scopes(azure: &AzureState, id: &ResourceId, scopes: &[Value]) -> Result<()> {
    let bad = |scope: &str| {
        Code::ours(400, "InvalidAssignableScope")
            .says(format_args!("The role cannot be assigned at '{scope}'."))
    };
    if scopes.is_empty() {
        return Err(bad(""));
    }
    for scope in scopes {
        let given = scope.as_str().unwrap_or_default();
        let parsed = ResourceId::parse(given.strip_suffix('/').unwrap_or(given)).map_err(|_| bad(given))?;
        let here = parsed.subscription_id().eq_ignore_ascii_case(id.subscription_id())
            || azure.subscription(parsed.subscription_id()).is_some();
        if !here || parsed.namespace().is_some() {
            return Err(bad(given));
        }
        azure.require_group(&parsed)?;
    }
    Ok(())
}

/// Each permission with its four lists.
fn permissions(given: Value) -> Result<Vec<Value>> {
    let Value::Array(given) = given else {
        return Err(Refusal::bad_format(
            "Could not convert permissions to a list. Path 'properties.permissions'.",
        ));
    };
    given
        .iter()
        .map(|permission| {
            let mut whole = Object::new();
            for list in LISTS {
                let actions = items(permission, list);
                if let Some(strange) =
                    actions.iter().find(|action| !is_action(action.as_str().unwrap_or_default()))
                {
                    let strange = strange.as_str().map_or_else(|| strange.to_string(), str::to_owned);
                    return Err(Code::azures(400, "InvalidActionOrNotAction").says(format_args!(
                        "'{strange}' does not match any of the actions supported by the providers."
                    )));
                }
                whole.insert(list.into(), actions.into());
            }
            Ok(Value::Object(whole))
        })
        .collect()
}

/// Whether a text names actions: `{namespace}/{type}/{verb}`, with `*` for anything.
fn is_action(text: &str) -> bool {
    if text.ends_with('*') {
        return true;
    }
    text.rsplit_once('/').is_some_and(|(what, verb)| {
        (what.contains('/') || what == "*") && VERBS.iter().any(|known| known.eq_ignore_ascii_case(verb))
    })
}
