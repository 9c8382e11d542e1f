"""Machines and disks."""
from azure.core.exceptions import ResourceExistsError
from azure.mgmt.compute import models as compute_models
from azure.mgmt.network import models as network_models

from proof import GROUP, refused, same, holds, step
from scale_sets import image


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
    holds("no password is returned", made.os_profile.admin_password is None)
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
    # Disks name instances of a scale set by their whole names.
    holder = f"{instance.id.rsplit('/', 1)[0]}/{instance.name}"
    same("who has it", (disk.disk_state, disk.managed_by.lower()), ("Attached", holder.lower()))
    # Attaches a second disk and detaches the first by the action that does both.
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
