"""Container registries (the guide of azure-mgmt-containerregistry)."""
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.containerregistry import ContainerRegistryManagementClient
from azure.mgmt.containerregistry import models as registry_models

from proof import GROUP, holds, refused, same, step

REGISTRY = "sdkproofregistry"


def registries(azure):
    return azure.client(ContainerRegistryManagementClient).registries


@step("a registry, under a name that was free")
def registry(azure):
    asked = registry_models.RegistryNameCheckRequest(name=REGISTRY, type="Microsoft.ContainerRegistry/registries")
    holds("the name is free", registries(azure).check_name_availability(asked).name_available)
    made = registries(azure).begin_create(
        GROUP,
        REGISTRY,
        registry_models.Registry(
            location=azure.region,
            sku=registry_models.Sku(name="Standard"),
            properties=registry_models.RegistryProperties(admin_user_enabled=False),
        ),
    ).result()
    same("its address", made.properties.login_server, f"{REGISTRY}.azurecr.io")
    holds("the name is taken", not registries(azure).check_name_availability(asked).name_available)
    same("registries", [registry.name for registry in registries(azure).list_by_resource_group(GROUP)], [REGISTRY])


@step("passwords of a registry's administrator, once there is one")
def passwords(azure):
    refused(HttpResponseError, 400, lambda: registries(azure).list_credentials(GROUP, REGISTRY))
    update = registry_models.RegistryUpdateParameters(
        properties=registry_models.RegistryPropertiesUpdateParameters(admin_user_enabled=True)
    )
    registries(azure).begin_update(GROUP, REGISTRY, update).result()
    before = registries(azure).list_credentials(GROUP, REGISTRY)
    same("user", before.username, REGISTRY)
    after = registries(azure).regenerate_credential(
        GROUP, REGISTRY, registry_models.RegenerateCredentialParameters(name="password")
    )
    values = lambda found: {password.name: password.value for password in found.passwords}
    holds("the first is new", values(before)["password"] != values(after)["password"])
    same("the second", values(after)["password2"], values(before)["password2"])


@step("a registry goes")
def registry_goes(azure):
    registries(azure).begin_delete(GROUP, REGISTRY).result()
    refused(ResourceNotFoundError, 404, lambda: registries(azure).get(GROUP, REGISTRY))
