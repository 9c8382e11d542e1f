"""Managed clusters and their pools of nodes (the guide of azure-mgmt-containerservice)."""
from azure.core.exceptions import ResourceNotFoundError
from azure.mgmt.containerservice import ContainerServiceClient
from azure.mgmt.containerservice import models as cluster_models

from proof import GROUP, holds, refused, same, step

CLUSTER = "sdk-cluster"


def service(azure):
    return azure.client(ContainerServiceClient)


def pool(azure, count, **more):
    return cluster_models.AgentPool(
        properties=cluster_models.ManagedClusterAgentPoolProfileProperties(
            count=count, vm_size="Standard_D2s_v3", os_type="Linux", type="VirtualMachineScaleSets", **more
        )
    )


@step("a managed cluster with nodes")
def cluster(azure):
    clusters = service(azure).managed_clusters
    newest = [version.version for version in clusters.list_kubernetes_versions(azure.region).values_property]
    holds("there are versions of Kubernetes", newest)
    made = clusters.begin_create_or_update(
        GROUP,
        CLUSTER,
        cluster_models.ManagedCluster(
            location=azure.region,
            identity=cluster_models.ManagedClusterIdentity(type="SystemAssigned"),
            properties=cluster_models.ManagedClusterProperties(
                dns_prefix="sdk",
                agent_pool_profiles=[
                    cluster_models.ManagedClusterAgentPoolProfile(
                        name="system", mode="System", count=2, vm_size="Standard_D2s_v3", os_type="Linux",
                        type="VirtualMachineScaleSets",
                    )
                ],
            ),
        ),
    ).result()
    same("state", made.properties.provisioning_state, "Succeeded")
    same("power", made.properties.power_state.code, "Running")
    holds("it has an address", made.properties.fqdn.startswith("sdk-"))
    same("clusters", [cluster.name for cluster in clusters.list_by_resource_group(GROUP)], [CLUSTER])
    sets = azure.compute.virtual_machine_scale_sets.list(made.properties.node_resource_group)
    same("machines", [found.sku.capacity for found in sets], [2])


@step("a kubeconfig of the cluster")
def kubeconfig(azure):
    clusters = service(azure).managed_clusters
    for found in (clusters.list_cluster_admin_credentials(GROUP, CLUSTER), clusters.list_cluster_user_credentials(GROUP, CLUSTER)):
        text = bytes(found.kubeconfigs[0].value).decode()
        holds("it names the cluster's address", clusters.get(GROUP, CLUSTER).properties.fqdn in text)


@step("a further pool: created, scaled, deleted")
def pools(azure):
    agent_pools = service(azure).agent_pools
    made = agent_pools.begin_create_or_update(GROUP, CLUSTER, "more", pool(azure, 1, mode="User")).result()
    same("nodes", made.properties.count, 1)
    scaled = agent_pools.begin_create_or_update(GROUP, CLUSTER, "more", pool(azure, 3, mode="User")).result()
    same("nodes", scaled.properties.count, 3)
    same("pools", sorted(found.name for found in agent_pools.list(GROUP, CLUSTER)), ["more", "system"])
    agent_pools.begin_delete(GROUP, CLUSTER, "more").result()
    refused(ResourceNotFoundError, 404, lambda: agent_pools.get(GROUP, CLUSTER, "more"))


@step("a cluster is stopped, started and deleted, with its machines")
def cluster_goes(azure):
    clusters = service(azure).managed_clusters
    clusters.begin_stop(GROUP, CLUSTER).result()
    same("power", clusters.get(GROUP, CLUSTER).properties.power_state.code, "Stopped")
    clusters.begin_start(GROUP, CLUSTER).result()
    same("power", clusters.get(GROUP, CLUSTER).properties.power_state.code, "Running")
    nodes = clusters.get(GROUP, CLUSTER).properties.node_resource_group
    clusters.begin_delete(GROUP, CLUSTER).result()
    refused(ResourceNotFoundError, 404, lambda: clusters.get(GROUP, CLUSTER))
    holds("the group of its machines is gone", not azure.resources.resource_groups.check_existence(nodes))
