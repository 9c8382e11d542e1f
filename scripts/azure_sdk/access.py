"""Access: identities, role definitions and assignments (the guide of azure-mgmt-authorization)."""
import uuid

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.mgmt.authorization import AuthorizationManagementClient
from azure.mgmt.authorization import models as authorization_models
from azure.mgmt.resource.resources import models as resource_models

from proof import GROUP, holds, refused, same, step


def access(azure):
    # The library's newest version for both kinds.
    return azure.client(AuthorizationManagementClient, api_version="2022-04-01")


def identity(azure, name):
    """The object ID of a user-assigned identity, which is created if missing."""
    made = azure.resources.resources.begin_create_or_update_by_id(
        azure.id_of(f"Microsoft.ManagedIdentity/userAssignedIdentities/{name}"),
        resource_models.GenericResource(location=azure.region),
        api_version="2023-01-31",
    ).result()
    return made.properties["principalId"]


def role(azure, name):
    scope = f"/subscriptions/{azure.subscription}"
    found = list(access(azure).role_definitions.list(scope, filter=f"roleName eq '{name}'"))
    same(f"roles called {name}", [definition.role_name for definition in found], [name])
    return found[0]


@step("a role is found by its name, with what it permits")
def built_in_role(azure):
    reader = role(azure, "Reader")
    same("kind", reader.role_type, "BuiltInRole")
    same("actions", reader.permissions[0].actions, ["*/read"])
    same("the same by its id", access(azure).role_definitions.get_by_id(reader.id).role_name, "Reader")


@step("a role is assigned to an identity, listed and taken away")
def assignment(azure):
    assignments = access(azure).role_assignments
    scope = f"/subscriptions/{azure.subscription}/resourceGroups/{GROUP}"
    principal, reader = identity(azure, "reader"), role(azure, "Reader")
    wanted = authorization_models.RoleAssignmentCreateParameters(
        role_definition_id=reader.id, principal_id=principal, principal_type="ServicePrincipal"
    )
    made = assignments.create(scope, str(uuid.uuid4()), wanted)
    same("scope", made.scope, scope)
    error = refused(ResourceExistsError, 409, lambda: assignments.create(scope, str(uuid.uuid4()), wanted))
    same("the refusal", error.error.code, "RoleAssignmentExists")
    found = list(assignments.list_for_scope(scope, filter=f"principalId eq '{principal}'"))
    same("its assignments", [assignment.id for assignment in found], [made.id])
    assignments.delete_by_id(made.id)
    refused(ResourceNotFoundError, 404, lambda: assignments.get_by_id(made.id))


@step("a role of one's own is defined and deleted")
def own_role(azure):
    definitions = access(azure).role_definitions
    scope, name = f"/subscriptions/{azure.subscription}", str(uuid.uuid4())
    made = definitions.create_or_update(
        scope,
        name,
        authorization_models.RoleDefinition(
            role_name="Restarter",
            description="Restarts machines.",
            permissions=[authorization_models.Permission(actions=["Microsoft.Compute/virtualMachines/restart/action"])],
            assignable_scopes=[scope],
        ),
    )
    same("name", made.role_name, "Restarter")
    own = definitions.list(scope, filter="type eq 'CustomRole'")
    holds("it is among the roles of one's own", made.id in [definition.id for definition in own])
    definitions.delete(scope, name)
    refused(ResourceNotFoundError, 404, lambda: definitions.get(scope, name))
