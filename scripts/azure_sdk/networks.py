"""Groups, networks and load balancers."""
from azure.mgmt.network import models as network_models

from proof import GROUP, holds, reference, same, step


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
