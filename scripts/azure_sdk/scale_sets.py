"""Scale sets of both kinds."""
from azure.mgmt.compute import models as compute_models

from proof import GROUP, holds, same, step

INSTANCES = 230


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
