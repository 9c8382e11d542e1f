"""Refusals as errors of the right class, and patience."""
import time

from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.mgmt.compute import models as compute_models
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.network import models as network_models

from proof import GROUP, holds, refused, same, step


@step("what is absent is ResourceNotFoundError")
def not_found(azure):
    error = refused(ResourceNotFoundError, 404, lambda: azure.network.load_balancers.get(GROUP, "absent"))
    same("the code", error.error.code, "ResourceNotFound")


@step("412: a stale etag is ResourceModifiedError")
def stale(azure):
    sets = azure.compute.virtual_machine_scale_sets
    seen = sets.get(GROUP, "uniform")
    sets.begin_update(GROUP, "uniform", compute_models.VirtualMachineScaleSetUpdate(tags={"somebody": "else"})).result()
    refused(
        ResourceModifiedError,
        412,
        lambda: sets.begin_create_or_update(
            GROUP, "uniform", seen, etag=seen.etag, match_condition=MatchConditions.IfNotModified
        ),
    )
    # Network's clients take the header as such.
    balancer = azure.network.load_balancers.get(GROUP, "front")
    azure.network.load_balancers.update_tags(GROUP, "front", network_models.TagsObject(tags={"somebody": "else"}))
    refused(
        HttpResponseError,
        412,
        lambda: azure.network.load_balancers.begin_create_or_update(
            GROUP, "front", balancer, headers={"If-Match": balancer.etag}
        ),
    )
    fresh = azure.network.load_balancers.get(GROUP, "front")
    azure.network.load_balancers.begin_create_or_update(GROUP, "front", fresh, headers={"If-Match": fresh.etag}).result()


@step("409: a taken name and a group on its way out are ResourceExistsError")
def conflict(azure):
    elsewhere = network_models.PublicIPAddress(location="brazilsouth", public_ip_allocation_method="Static")
    error = refused(
        ResourceExistsError,
        409,
        lambda: azure.network.public_ip_addresses.begin_create_or_update(GROUP, "front", elsewhere),
    )
    same("the code", error.error.code, "InvalidResourceLocation")
    leaving = GROUP + "-leaving"
    azure.resources.resource_groups.create_or_update(leaving, {"location": azure.region})
    azure.control("PUT", "latency", {"otherwiseMs": 2000})
    try:
        poller = azure.resources.resource_groups.begin_delete(leaving)
        late = network_models.NetworkSecurityGroup(location=azure.region)
        error = refused(
            ResourceExistsError,
            409,
            lambda: azure.network.network_security_groups.begin_create_or_update(leaving, "late", late),
        )
        same("the code", error.error.code, "ResourceGroupBeingDeleted")
        poller.wait()
    finally:
        azure.control("PUT", "latency", {})
    holds("the group is gone", not azure.resources.resource_groups.check_existence(leaving))


@step("429: a spent budget is HttpResponseError with Retry-After")
def throttled(azure):
    hasty = azure.client(NetworkManagementClient, retry_total=0, retry_status=0)
    azure.control("PUT", "budgets", {"reads": 3, "readsPerSecond": 0.5})
    try:
        begun = time.monotonic()
        error = refused(HttpResponseError, 429, lambda: [hasty.virtual_networks.get(GROUP, "net") for _ in range(20)])
        holds("Retry-After says how long", int(error.response.headers["Retry-After"]) >= 1)
        # The default client waits for the time in Retry-After, and then gets its answer.
        same("the patient client reads", azure.network.virtual_networks.get(GROUP, "net").name, "net")
        holds("it waited", time.monotonic() - begun >= 0.9)
    finally:
        azure.control("PUT", "budgets", {})


@step("pollers wait for slow operations")
def slow(azure):
    azure.control("PUT", "latency", {"otherwiseMs": 1500})
    try:
        poller = azure.network.public_ip_addresses.begin_create_or_update(
            GROUP,
            "slow",
            network_models.PublicIPAddress(
                location=azure.region,
                sku=network_models.PublicIPAddressSku(name="Standard"),
                public_ip_allocation_method="Static",
            ),
        )
        holds("it is not done at once", not poller.done())
        same("what others see meanwhile", azure.network.public_ip_addresses.get(GROUP, "slow").provisioning_state, "Updating")
        same("the result", poller.result().provisioning_state, "Succeeded")
        same("the poller's last word", poller.status(), "Succeeded")
        # Another poller continues after a restart of the program.
        poller = azure.network.public_ip_addresses.begin_delete(GROUP, "slow")
        again = azure.network.public_ip_addresses.begin_delete(GROUP, "slow", continuation_token=poller.continuation_token())
        again.wait()
        same("the poller's last word", again.status(), "Succeeded")
    finally:
        azure.control("PUT", "latency", {})
    refused(ResourceNotFoundError, 404, lambda: azure.network.public_ip_addresses.get(GROUP, "slow"))


@step("a network that is used cannot be deleted")
def in_use(azure):
    error = refused(HttpResponseError, 400, lambda: azure.network.virtual_networks.begin_delete(GROUP, "net").result())
    same("the code", error.error.code, "InUseSubnetCannotBeDeleted")
