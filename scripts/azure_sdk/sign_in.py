"""Sign-in, and the lists of regions, providers and sizes."""
from azure.core.exceptions import ClientAuthenticationError

from proof import holds, same, step


@step("a wrong secret is refused as ClientAuthenticationError")
def wrong_secret(azure):
    scope = azure.endpoint + "/.default"
    try:
        azure.sign_in("wrong").get_token(scope)
    except ClientAuthenticationError as error:
        holds("the error names AADSTS7000215", "AADSTS7000215" in str(error))
        return
    raise AssertionError("a token was issued for a wrong secret")


@step("subscription, regions, providers and sizes are read")
def catalogue(azure):
    names = {provider.namespace for provider in azure.resources.providers.list()}
    for wanted in ("Microsoft.Compute", "Microsoft.Network", "Microsoft.Resources"):
        holds(f"{wanted} is a provider", wanted in names)
    skus = list(azure.compute.resource_skus.list(filter=f"location eq '{azure.region}'"))
    sizes = [sku for sku in skus if sku.resource_type == "virtualMachines"]
    size = next((sku for sku in sizes if sku.name == "Standard_D2s_v3"), None)
    holds("Standard_D2s_v3 is a size", size is not None)
    capabilities = {capability.name: capability.value for capability in size.capabilities}
    same("vCPUs of Standard_D2s_v3", capabilities["vCPUs"], "2")
    holds("usage counts cores", any(usage.name.value == "cores" for usage in azure.compute.usage.list(azure.region)))
