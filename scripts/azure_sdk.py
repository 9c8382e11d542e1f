#!/usr/bin/env python3
"""Drive a simulated Azure with Azure's own SDK for Python, and check what it reads back.

Nothing here knows the simulator, apart from the few lines that set its latency and budgets: the
clients are azure-identity, azure-mgmt-resource, azure-mgmt-network and azure-mgmt-compute, told only
where Azure is. Every step prints one line; a step that fails says why, the others go on.

  azure_sdk.py --credentials credentials.json --ca ca.pem --control http://127.0.0.1:8080

`cargo xtask sdk` prepares a virtual environment, starts the simulator and runs this.
Exit status: 0 if every step passed, else 1.
"""
import argparse
import json
import logging
import os
import sys
import time
import traceback
import urllib.request
from pathlib import Path

from azure.core import MatchConditions
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.identity import ClientSecretCredential
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.compute import models as compute_models
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.network import models as network_models
from azure.mgmt.resource.resources import ResourceManagementClient

GROUP = "sdk-proof"
INSTANCES = 230


class Azure:
    """Where Azure is and who asks, and one client a provider."""

    def __init__(self, credentials, control):
        self.endpoint = credentials["resourceManagerEndpoint"].rstrip("/")
        self.authority = credentials["authority"].rstrip("/")
        self.tenant = credentials["tenantId"]
        self.subscription = credentials["subscriptionId"]
        self.client_id, self.secret = credentials["aadClientId"], credentials["aadClientSecret"]
        self.control_url = control.rstrip("/")
        self.credential = self.sign_in(self.secret)
        self.resources = self.client(ResourceManagementClient)
        self.network = self.client(NetworkManagementClient)
        self.compute = self.client(ComputeManagementClient)
        self.region = next(iter(self.resources.providers.get("Microsoft.Compute").resource_types)).locations[0]
        self.region = self.region.replace(" ", "").lower()

    def sign_in(self, secret):
        # Without instance discovery the library does not ask the public cloud whether the authority is one.
        return ClientSecretCredential(
            self.tenant, self.client_id, secret, authority=self.authority, disable_instance_discovery=True
        )

    def client(self, kind, credential=None, **more):
        return kind(
            credential or self.credential,
            self.subscription,
            base_url=self.endpoint,
            credential_scopes=[self.endpoint + "/.default"],
            polling_interval=1,
            **more,
        )

    def control(self, method, what, body):
        """Says something to the simulator itself."""
        request = urllib.request.Request(
            f"{self.control_url}/_cerulean/{what}",
            data=json.dumps(body).encode(),
            method=method,
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()

    def id_of(self, rest):
        return f"/subscriptions/{self.subscription}/resourceGroups/{GROUP}/providers/{rest}"


STEPS = []


def step(words):
    """Registers a step under the words that its line has."""

    def register(function):
        STEPS.append((words, function))
        return function

    return register


def same(what, got, want):
    if got != want:
        raise AssertionError(f"{what} is {got!r}, not {want!r}")


def holds(what, truth):
    if not truth:
        raise AssertionError(f"not so: {what}")


def refused(kind, status, call):
    """What `call` is refused with: an error of exactly this class and status."""
    try:
        call()
    except HttpResponseError as error:
        same("the class of the error", type(error).__name__, kind.__name__)
        same("the status", error.status_code, status)
        return error
    raise AssertionError(f"{kind.__name__} was expected, and nothing was refused")


def reference(kind, resource_id):
    return kind(id=resource_id)


# ---------------------------------------------------------------------------------------------------
# Who asks
# ---------------------------------------------------------------------------------------------------


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


# ---------------------------------------------------------------------------------------------------
# Networks
# ---------------------------------------------------------------------------------------------------


@step("a resource group is created, found and tagged")
def group(azure):
    created = azure.resources.resource_groups.create_or_update(
        GROUP, {"location": azure.region, "tags": {"purpose": "proof"}}
    )
    same("provisioning state", created.properties.provisioning_state, "Succeeded")
    holds("the group exists", azure.resources.resource_groups.check_existence(GROUP))
    found = [group.name for group in azure.resources.resource_groups.list() if group.name == GROUP]
    same("groups of that name in the list", found, [GROUP])


@step("a security group with rules, and its default rules")
def security_group(azure):
    rule = network_models.SecurityRule(
        name="web",
        priority=500,
        direction="Inbound",
        access="Allow",
        protocol="Tcp",
        source_address_prefix="Internet",
        source_port_range="*",
        destination_address_prefix="*",
        destination_port_ranges=["80", "443"],
    )
    group = network_models.NetworkSecurityGroup(location=azure.region, security_rules=[rule])
    made = azure.network.network_security_groups.begin_create_or_update(GROUP, "guard", group).result()
    same("rules", [rule.name for rule in made.security_rules], ["web"])
    same("default rules", len(made.default_security_rules), 6)
    same("ports", made.security_rules[0].destination_port_ranges, ["80", "443"])
    again = azure.network.security_rules.get(GROUP, "guard", "web")
    same("priority", again.priority, 500)


@step("a virtual network with two subnets")
def network(azure):
    guard = network_models.NetworkSecurityGroup(id=azure.id_of("Microsoft.Network/networkSecurityGroups/guard"))
    made = azure.network.virtual_networks.begin_create_or_update(
        GROUP,
        "net",
        network_models.VirtualNetwork(
            location=azure.region,
            address_space=network_models.AddressSpace(address_prefixes=["10.20.0.0/16"]),
            subnets=[
                network_models.Subnet(name="nodes", address_prefix="10.20.0.0/20", network_security_group=guard)
            ],
        ),
    ).result()
    same("subnets", [subnet.name for subnet in made.subnets], ["nodes"])
    subnet = azure.network.subnets.begin_create_or_update(
        GROUP, "net", "services", network_models.Subnet(address_prefix="10.20.16.0/24")
    ).result()
    same("the second subnet", subnet.address_prefix, "10.20.16.0/24")
    same("subnets of the network", {s.name for s in azure.network.subnets.list(GROUP, "net")}, {"nodes", "services"})
    holds("the security group knows its subnet", azure.network.network_security_groups.get(GROUP, "guard").subnets)


@step("a static public address")
def public_address(azure):
    made = azure.network.public_ip_addresses.begin_create_or_update(
        GROUP,
        "front",
        network_models.PublicIPAddress(
            location=azure.region,
            sku=network_models.PublicIPAddressSku(name="Standard"),
            public_ip_allocation_method="Static",
            zones=["1", "2", "3"],
        ),
    ).result()
    holds("it has an address", made.ip_address)
    same("version", made.public_ip_address_version, "IPv4")


@step("a load balancer with frontend, pool, probe and rule")
def load_balancer(azure):
    balancer = azure.id_of("Microsoft.Network/loadBalancers/front")
    made = azure.network.load_balancers.begin_create_or_update(
        GROUP,
        "front",
        network_models.LoadBalancer(
            location=azure.region,
            sku=network_models.LoadBalancerSku(name="Standard"),
            frontend_ip_configurations=[
                network_models.FrontendIPConfiguration(
                    name="f",
                    public_ip_address=network_models.PublicIPAddress(
                        id=azure.id_of("Microsoft.Network/publicIPAddresses/front")
                    ),
                )
            ],
            backend_address_pools=[network_models.BackendAddressPool(name="nodes")],
            probes=[network_models.Probe(name="h", protocol="Http", port=10256, request_path="/healthz", interval_in_seconds=5)],
            load_balancing_rules=[
                network_models.LoadBalancingRule(
                    name="web",
                    protocol="Tcp",
                    frontend_port=80,
                    backend_port=8080,
                    frontend_ip_configuration=reference(network_models.SubResource, f"{balancer}/frontendIPConfigurations/f"),
                    backend_address_pool=reference(network_models.SubResource, f"{balancer}/backendAddressPools/nodes"),
                    probe=reference(network_models.SubResource, f"{balancer}/probes/h"),
                )
            ],
        ),
    ).result()
    rule = made.load_balancing_rules[0]
    same("the rule's ports", (rule.frontend_port, rule.backend_port), (80, 8080))
    same("idle timeout", rule.idle_timeout_in_minutes, 4)
    same("rules of the probe", [rule.id.split("/")[-1] for rule in made.probes[0].load_balancing_rules], ["web"])
    address = azure.network.public_ip_addresses.get(GROUP, "front")
    holds("the address knows its frontend", address.ip_configuration.id.endswith("/frontendIPConfigurations/f"))


# ---------------------------------------------------------------------------------------------------
# Scale sets
# ---------------------------------------------------------------------------------------------------


def machine_profile(azure, prefix, flexible=False):
    balancer = azure.id_of("Microsoft.Network/loadBalancers/front")
    ip_configuration = compute_models.VirtualMachineScaleSetIPConfiguration(
        name="ipconfig",
        primary=True,
        subnet=compute_models.ApiEntityReference(id=azure.id_of("Microsoft.Network/virtualNetworks/net/subnets/nodes")),
        load_balancer_backend_address_pools=[
            compute_models.SubResource(id=f"{balancer}/backendAddressPools/nodes")
        ],
    )
    network = compute_models.VirtualMachineScaleSetNetworkProfile(
        network_interface_configurations=[
            compute_models.VirtualMachineScaleSetNetworkConfiguration(
                name="nic", primary=True, ip_configurations=[ip_configuration]
            )
        ]
    )
    if flexible:
        network.network_api_version = "2020-11-01"
    return compute_models.VirtualMachineScaleSetVMProfile(
        os_profile=compute_models.VirtualMachineScaleSetOSProfile(
            computer_name_prefix=prefix, admin_username="someone", admin_password="Correct-Horse-7"
        ),
        storage_profile=compute_models.VirtualMachineScaleSetStorageProfile(
            image_reference=image(),
            os_disk=compute_models.VirtualMachineScaleSetOSDisk(
                create_option="FromImage",
                caching="ReadWrite",
                managed_disk=compute_models.VirtualMachineScaleSetManagedDiskParameters(
                    storage_account_type="Premium_LRS"
                ),
            ),
        ),
        network_profile=network,
    )


def image():
    return compute_models.ImageReference(
        publisher="Canonical", offer="ubuntu-24_04-lts", sku="server", version="latest"
    )


@step("a uniform scale set with machines in the pool")
def uniform(azure):
    made = azure.compute.virtual_machine_scale_sets.begin_create_or_update(
        GROUP,
        "uniform",
        compute_models.VirtualMachineScaleSet(
            location=azure.region,
            zones=["1", "2", "3"],
            sku=compute_models.Sku(name="Standard_D2s_v3", tier="Standard", capacity=3),
            orchestration_mode="Uniform",
            overprovision=False,
            single_placement_group=False,
            upgrade_policy=compute_models.UpgradePolicy(mode="Manual"),
            virtual_machine_profile=machine_profile(azure, "uni"),
        ),
    ).result()
    same("capacity", made.sku.capacity, 3)
    same("orchestration", made.orchestration_mode, "Uniform")
    instances = list(azure.compute.virtual_machine_scale_set_vms.list(GROUP, "uniform", expand="instanceView"))
    same("instances", len(instances), 3)
    same("zones", sorted(zone for instance in instances for zone in instance.zones), ["1", "2", "3"])
    codes = {status.code for status in instances[0].instance_view.statuses}
    holds("it runs", "PowerState/running" in codes)
    pool = azure.network.load_balancer_backend_address_pools.get(GROUP, "front", "nodes")
    same("members of the pool", len(pool.backend_ip_configurations), 3)
    interfaces = list(azure.network.network_interfaces.list_virtual_machine_scale_set_network_interfaces(GROUP, "uniform"))
    same("interfaces", len(interfaces), 3)
    holds("an interface has an address", interfaces[0].ip_configurations[0].private_ip_address.startswith("10.20."))


@step("a flexible scale set, whose machines are virtual machines")
def flexible(azure):
    made = azure.compute.virtual_machine_scale_sets.begin_create_or_update(
        GROUP,
        "flexible",
        compute_models.VirtualMachineScaleSet(
            location=azure.region,
            sku=compute_models.Sku(name="Standard_D2s_v3", tier="Standard", capacity=2),
            orchestration_mode="Flexible",
            platform_fault_domain_count=1,
            virtual_machine_profile=machine_profile(azure, "flex", flexible=True),
        ),
    ).result()
    same("orchestration", made.orchestration_mode, "Flexible")
    wanted = f"'virtualMachineScaleSet/id' eq '{made.id}'"
    machines = list(azure.compute.virtual_machines.list(GROUP, filter=wanted))
    same("machines", len(machines), 2)
    for machine in machines:
        same("the set of the machine", machine.virtual_machine_scale_set.id.lower(), made.id.lower())
        nic = machine.network_profile.network_interfaces[0].id.split("/")[-1]
        interface = azure.network.network_interfaces.get(GROUP, nic)
        same("the machine of the interface", interface.virtual_machine.id.lower(), machine.id.lower())


@step(f"{INSTANCES} instances over several pages, without repeats")
def pages(azure):
    sets = azure.compute.virtual_machine_scale_sets
    poller = sets.begin_update(
        GROUP, "uniform", compute_models.VirtualMachineScaleSetUpdate(sku=compute_models.Sku(name="Standard_D2s_v3", capacity=INSTANCES))
    )
    same("capacity", poller.result().sku.capacity, INSTANCES)
    read = [list(page) for page in azure.compute.virtual_machine_scale_set_vms.list(GROUP, "uniform").by_page()]
    holds("there are several pages", len(read) > 1)
    ids = [instance.instance_id for page in read for instance in page]
    same("instances on all pages", len(ids), INSTANCES)
    same("different ones", len(set(ids)), INSTANCES)
    sets.begin_update(
        GROUP, "uniform", compute_models.VirtualMachineScaleSetUpdate(sku=compute_models.Sku(name="Standard_D2s_v3", capacity=3))
    ).result()
    same("instances left", len(list(azure.compute.virtual_machine_scale_set_vms.list(GROUP, "uniform"))), 3)


# ---------------------------------------------------------------------------------------------------
# Machines and disks
# ---------------------------------------------------------------------------------------------------


def new_disk(azure, name, gigabytes=32, **more):
    disk = compute_models.Disk(
        location=azure.region,
        sku=compute_models.DiskSku(name="Premium_ZRS"),
        creation_data=compute_models.CreationData(create_option="Empty"),
        disk_size_gb=gigabytes,
        **more,
    )
    return azure.compute.disks.begin_create_or_update(GROUP, name, disk).result()


@step("disks: created, resized, snapshotted")
def disks(azure):
    made = new_disk(azure, "data")
    same("size", (made.disk_size_gb, made.disk_size_bytes), (32, 32 * 1024**3))
    same("state", (made.disk_state, made.provisioning_state), ("Unattached", "Succeeded"))
    grown = azure.compute.disks.begin_update(GROUP, "data", compute_models.DiskUpdate(disk_size_gb=64)).result()
    same("size", grown.disk_size_gb, 64)
    refused(ResourceExistsError, 409, lambda: azure.compute.disks.begin_update(
        GROUP, "data", compute_models.DiskUpdate(disk_size_gb=16)).result())
    snapshot = azure.compute.snapshots.begin_create_or_update(
        GROUP,
        "data-snapshot",
        compute_models.Snapshot(
            location=azure.region,
            creation_data=compute_models.CreationData(create_option="Copy", source_resource_id=made.id),
        ),
    ).result()
    same("size of the snapshot", snapshot.disk_size_gb, 64)
    copied = azure.compute.disks.begin_create_or_update(
        GROUP,
        "from-snapshot",
        compute_models.Disk(
            location=azure.region,
            creation_data=compute_models.CreationData(create_option="Copy", source_resource_id=snapshot.id),
        ),
    ).result()
    same("size of the copy", copied.disk_size_gb, 64)


@step("a virtual machine with an interface")
def machine(azure):
    interface = azure.network.network_interfaces.begin_create_or_update(
        GROUP,
        "single-nic",
        network_models.NetworkInterface(
            location=azure.region,
            ip_configurations=[
                network_models.NetworkInterfaceIPConfiguration(
                    name="ipconfig",
                    subnet=network_models.Subnet(
                        id=azure.id_of("Microsoft.Network/virtualNetworks/net/subnets/nodes")
                    ),
                )
            ],
        ),
    ).result()
    address = interface.ip_configurations[0].private_ip_address
    holds("it has an address", address.startswith("10.20."))
    made = azure.compute.virtual_machines.begin_create_or_update(
        GROUP,
        "single",
        compute_models.VirtualMachine(
            location=azure.region,
            hardware_profile=compute_models.HardwareProfile(vm_size="Standard_D2s_v3"),
            os_profile=compute_models.OSProfile(
                computer_name="single", admin_username="someone", admin_password="Correct-Horse-7"
            ),
            storage_profile=compute_models.StorageProfile(
                image_reference=image(),
                os_disk=compute_models.OSDisk(create_option="FromImage", name="single-os"),
            ),
            network_profile=compute_models.NetworkProfile(
                network_interfaces=[compute_models.NetworkInterfaceReference(id=interface.id, primary=True)]
            ),
        ),
    ).result()
    same("size", made.hardware_profile.vm_size, "Standard_D2s_v3")
    holds("it has an id of its own", made.vm_id)
    holds("no password is told", made.os_profile.admin_password is None)
    same("state of its OS disk", azure.compute.disks.get(GROUP, "single-os").disk_state, "Attached")
    attached = azure.network.network_interfaces.get(GROUP, "single-nic").virtual_machine
    same("the interface's machine", attached.id.lower(), made.id.lower())


def data_disk(azure, name, lun):
    return compute_models.DataDisk(
        lun=lun,
        create_option="Attach",
        caching="ReadOnly",
        managed_disk=compute_models.ManagedDiskParameters(id=azure.id_of(f"Microsoft.Compute/disks/{name}")),
    )


@step("a disk is attached to the machine and detached")
def attach_to_machine(azure):
    machines = azure.compute.virtual_machines
    machine = machines.get(GROUP, "single")
    machine.storage_profile.data_disks = [data_disk(azure, "data", 3)]
    changed = machines.begin_create_or_update(GROUP, "single", machine).result()
    same("LUNs", [disk.lun for disk in changed.storage_profile.data_disks], [3])
    disk = azure.compute.disks.get(GROUP, "data")
    same("who has it", (disk.disk_state, disk.managed_by.lower()), ("Attached", machine.id.lower()))
    error = refused(ResourceExistsError, 409, lambda: azure.compute.disks.begin_delete(GROUP, "data"))
    same("the refusal", error.error.code, "OperationNotAllowed")
    machine = machines.get(GROUP, "single")
    machine.storage_profile.data_disks = []
    changed = machines.begin_create_or_update(GROUP, "single", machine).result()
    same("data disks", list(changed.storage_profile.data_disks or []), [])
    disk = azure.compute.disks.get(GROUP, "data")
    same("who has it", (disk.disk_state, disk.managed_by), ("Unattached", None))


@step("a disk is attached to an instance of the scale set and detached")
def attach_to_instance(azure):
    instances = azure.compute.virtual_machine_scale_set_vms
    first = next(iter(instances.list(GROUP, "uniform"))).instance_id
    instance = instances.get(GROUP, "uniform", first)
    same("data disks before", list(instance.storage_profile.data_disks or []), [])
    instance.storage_profile.data_disks = [data_disk(azure, "data", 0)]
    changed = instances.begin_update(GROUP, "uniform", first, instance).result()
    same("LUNs", [disk.lun for disk in changed.storage_profile.data_disks], [0])
    disk = azure.compute.disks.get(GROUP, "data")
    same("who has it", (disk.disk_state, disk.managed_by.lower()), ("Attached", instance.id.lower()))
    # A second one, and away with the first, by the action that does both.
    new_disk(azure, "more")
    profile = instances.begin_attach_detach_data_disks(
        GROUP,
        "uniform",
        first,
        compute_models.AttachDetachDataDisksRequest(
            data_disks_to_attach=[
                compute_models.DataDisksToAttach(disk_id=azure.id_of("Microsoft.Compute/disks/more"), lun=1)
            ],
            data_disks_to_detach=[compute_models.DataDisksToDetach(disk_id=disk.id)],
        ),
    ).result()
    same("LUNs", [disk.lun for disk in profile.data_disks], [1])
    same("the first", azure.compute.disks.get(GROUP, "data").disk_state, "Unattached")
    same("the second", azure.compute.disks.get(GROUP, "more").disk_state, "Attached")
    instance = instances.get(GROUP, "uniform", first)
    instance.storage_profile.data_disks = []
    instances.begin_update(GROUP, "uniform", first, instance).result()
    same("the second", azure.compute.disks.get(GROUP, "more").disk_state, "Unattached")


@step("machines are stopped, deallocated and started")
def power(azure):
    machines = azure.compute.virtual_machines

    def state():
        view = machines.instance_view(GROUP, "single")
        return next(status.code for status in view.statuses if status.code.startswith("PowerState/"))

    same("power", state(), "PowerState/running")
    machines.begin_power_off(GROUP, "single").result()
    same("power", state(), "PowerState/stopped")
    machines.begin_deallocate(GROUP, "single").result()
    same("power", state(), "PowerState/deallocated")
    machines.begin_start(GROUP, "single").result()
    same("power", state(), "PowerState/running")
    azure.compute.virtual_machine_scale_set_vms.begin_restart(
        GROUP, "uniform", next(iter(azure.compute.virtual_machine_scale_set_vms.list(GROUP, "uniform"))).instance_id
    ).result()


# ---------------------------------------------------------------------------------------------------
# Refusals
# ---------------------------------------------------------------------------------------------------


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
        # The client as it comes waits as long as it is told, and then gets its answer.
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
        # Another one goes on where a program was restarted.
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


# ---------------------------------------------------------------------------------------------------
# The end
# ---------------------------------------------------------------------------------------------------


@step("the group is deleted, and everything in it is gone")
def the_end(azure):
    count = len(list(azure.resources.resources.list_by_resource_group(GROUP)))
    holds("there is much in the group", count >= 8)
    azure.resources.resource_groups.begin_delete(GROUP).result()
    holds("the group is gone", not azure.resources.resource_groups.check_existence(GROUP))
    refused(ResourceNotFoundError, 404, lambda: azure.compute.virtual_machine_scale_sets.get(GROUP, "uniform"))
    left = [resource.id for resource in azure.resources.resources.list() if f"/{GROUP}/" in resource.id]
    same("what is left in the subscription", left, [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--credentials", required=True, type=Path, help="credentials.json of `cerulean simulate azure`")
    parser.add_argument("--ca", required=True, type=Path, help="ca.pem of `cerulean simulate azure`")
    parser.add_argument("--control", required=True, help="the simulator's plain HTTP, for latency and budgets")
    parser.add_argument("-v", "--verbose", action="store_true", help="show where a step failed")
    arguments = parser.parse_args()
    # What is refused is said below, by the step that expects it.
    logging.getLogger("azure").setLevel(logging.CRITICAL)
    # The libraries trust what this names, and nothing else needs to be said.
    os.environ["REQUESTS_CA_BUNDLE"] = str(arguments.ca.resolve())
    azure = Azure(json.loads(arguments.credentials.read_text()), arguments.control)
    failed = 0
    for words, function in STEPS:
        begun = time.monotonic()
        try:
            function(azure)
        except Exception as problem:  # pylint: disable=broad-except
            failed += 1
            text = " ".join(str(problem).split())
            print(f"no  {words}: {type(problem).__name__}: {text[:600]}", flush=True)
            if arguments.verbose:
                traceback.print_exc()
        else:
            print(f"ok  {words} ({time.monotonic() - begun:.1f} s)", flush=True)
    print(f"{len(STEPS) - failed} of {len(STEPS)} steps passed.")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
