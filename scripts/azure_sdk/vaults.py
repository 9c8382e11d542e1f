"""Vaults and their secrets (the guides of azure-mgmt-keyvault and azure-keyvault-secrets)."""
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.keyvault.secrets import SecretClient
from azure.mgmt.keyvault import KeyVaultManagementClient
from azure.mgmt.keyvault import models as vault_models

from proof import GROUP, holds, refused, same, step

VAULT = "sdkproofvault"


def vaults(azure):
    return azure.client(KeyVaultManagementClient).vaults


def secrets(azure):
    return SecretClient(vault_url=vaults(azure).get(GROUP, VAULT).properties.vault_uri, credential=azure.credential)


def policy(azure, *permissions):
    return vault_models.AccessPolicyEntry(
        tenant_id=azure.tenant,
        object_id=azure.object_id(),
        permissions=vault_models.Permissions(secrets=list(permissions)),
    )


@step("a vault, under a name that was free")
def vault(azure):
    asked = vault_models.VaultCheckNameAvailabilityParameters(name=VAULT)
    holds("the name is free", vaults(azure).check_name_availability(asked).name_available)
    made = vaults(azure).begin_create_or_update(
        GROUP,
        VAULT,
        vault_models.VaultCreateOrUpdateParameters(
            location=azure.region,
            properties=vault_models.VaultProperties(
                tenant_id=azure.tenant,
                sku=vault_models.Sku(family="A", name="standard"),
                access_policies=[policy(azure, "get")],
            ),
        ),
    ).result()
    same("its address", made.properties.vault_uri, f"https://{VAULT}.vault.azure.net/")
    holds("the name is taken", not vaults(azure).check_name_availability(asked).name_available)
    holds("it is in the group", VAULT in [vault.name for vault in vaults(azure).list_by_resource_group(GROUP)])


@step("what an access policy does not allow is refused")
def policies(azure):
    error = refused(HttpResponseError, 403, lambda: secrets(azure).set_secret("greeting", "hello"))
    holds("the refusal says that it is forbidden", error.error.code == "Forbidden")
    more = policy(azure, "get", "list", "set", "delete", "recover", "purge")
    vaults(azure).update_access_policy(
        GROUP,
        VAULT,
        "replace",
        vault_models.VaultAccessPolicyParameters(
            properties=vault_models.VaultAccessPolicyProperties(access_policies=[more])
        ),
    )
    same("the secret", secrets(azure).set_secret("greeting", "hello").value, "hello")


@step("versions of a secret, and their properties")
def versions(azure):
    client = secrets(azure)
    first = client.get_secret("greeting")
    second = client.set_secret("greeting", "good morning", content_type="text/plain", tags={"for": "breakfast"})
    holds("there is a new version", first.properties.version != second.properties.version)
    same("the newest", client.get_secret("greeting").value, "good morning")
    same("the first", client.get_secret("greeting", first.properties.version).value, "hello")
    changed = client.update_secret_properties("greeting", first.properties.version, enabled=False)
    same("enabled", changed.enabled, False)
    refused(HttpResponseError, 403, lambda: client.get_secret("greeting", first.properties.version))
    same("versions", len(list(client.list_properties_of_secret_versions("greeting"))), 2)
    same("secrets", [secret.name for secret in client.list_properties_of_secrets()], ["greeting"])
    refused(ResourceNotFoundError, 404, lambda: client.get_secret("absent"))


@step("a secret is deleted, recovered and purged")
def deleted_secrets(azure):
    client = secrets(azure)
    deleted = client.begin_delete_secret("greeting").result()
    same("its name", deleted.name, "greeting")
    refused(ResourceNotFoundError, 404, lambda: client.get_secret("greeting"))
    same("deleted ones", [secret.name for secret in client.list_deleted_secrets()], ["greeting"])
    client.begin_recover_deleted_secret("greeting").wait()
    same("the secret", client.get_secret("greeting").value, "good morning")
    client.begin_delete_secret("greeting").wait()
    client.purge_deleted_secret("greeting")
    same("deleted ones", list(client.list_deleted_secrets()), [])


@step("a vault is deleted and purged")
def vault_goes(azure):
    vaults(azure).delete(GROUP, VAULT)
    refused(ResourceNotFoundError, 404, lambda: vaults(azure).get(GROUP, VAULT))
    same("deleted ones", [vault.name for vault in vaults(azure).list_deleted()], [VAULT])
    vaults(azure).begin_purge_deleted(VAULT, azure.region).result()
    same("deleted ones", list(vaults(azure).list_deleted()), [])
