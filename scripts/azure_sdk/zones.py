"""Names inside of networks (the guide of azure-mgmt-privatedns)."""
from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.mgmt.privatedns import PrivateDnsManagementClient
from azure.mgmt.privatedns import models as dns_models

from proof import GROUP, holds, refused, same, step

ZONE = "inside.example"


def zones(azure):
    return azure.client(PrivateDnsManagementClient)


@step("a private zone, linked to a network")
def zone_and_link(azure):
    dns = zones(azure)
    made = dns.private_zones.begin_create_or_update(GROUP, ZONE, dns_models.PrivateZone(location="global")).result()
    same("state", made.properties.provisioning_state, "Succeeded")
    same("record sets", made.properties.number_of_record_sets, 1)
    link = dns.virtual_network_links.begin_create_or_update(
        GROUP,
        ZONE,
        "net",
        dns_models.VirtualNetworkLink(
            location="global",
            properties=dns_models.VirtualNetworkLinkProperties(
                virtual_network=dns_models.SubResource(id=azure.id_of("Microsoft.Network/virtualNetworks/net")),
                registration_enabled=False,
            ),
        ),
    ).result()
    same("link", link.properties.virtual_network_link_state, "Completed")
    same("links", [link.name for link in dns.virtual_network_links.list(GROUP, ZONE)], ["net"])


@step("records of a private zone")
def records(azure):
    sets = zones(azure).record_sets
    record = lambda address: dns_models.RecordSet(
        properties=dns_models.RecordSetProperties(ttl=300, a_records=[dns_models.ARecord(ipv4_address=address)])
    )
    made = sets.create_or_update(GROUP, ZONE, "A", "www", record("10.20.0.9"))
    same("name", made.properties.fqdn, f"www.{ZONE}.")
    same("addresses", [entry.ipv4_address for entry in sets.get(GROUP, ZONE, "A", "www").properties.a_records], ["10.20.0.9"])
    error = refused(
        ResourceModifiedError,
        412,
        lambda: sets.create_or_update(
            GROUP, ZONE, "A", "www", record("10.20.0.10"), etag="stale", match_condition=MatchConditions.IfNotModified
        ),
    )
    holds("the refusal has a code", error.error.code)
    same("sets of all types", sorted(entry.name for entry in sets.list(GROUP, ZONE)), ["@", "www"])
    same("sets of one type", [entry.name for entry in sets.list_by_type(GROUP, ZONE, "A")], ["www"])
    sets.delete(GROUP, ZONE, "A", "www")
    refused(ResourceNotFoundError, 404, lambda: sets.get(GROUP, ZONE, "A", "www"))


@step("a zone that is linked stays, and goes after its link")
def zone_goes(azure):
    dns = zones(azure)
    refused(ResourceExistsError, 409, lambda: dns.private_zones.begin_delete(GROUP, ZONE).result())
    dns.virtual_network_links.begin_delete(GROUP, ZONE, "net").result()
    dns.private_zones.begin_delete(GROUP, ZONE).result()
    refused(ResourceNotFoundError, 404, lambda: dns.private_zones.get(GROUP, ZONE))
