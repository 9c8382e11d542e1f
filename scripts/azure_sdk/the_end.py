"""The end of everything."""
from azure.core.exceptions import ResourceNotFoundError

from proof import GROUP, holds, refused, same, step


@step("the group is deleted, and everything in it is gone")
def the_end(azure):
    count = len(list(azure.resources.resources.list_by_resource_group(GROUP)))
    holds("there is much in the group", count >= 8)
    azure.resources.resource_groups.begin_delete(GROUP).result()
    holds("the group is gone", not azure.resources.resource_groups.check_existence(GROUP))
    refused(ResourceNotFoundError, 404, lambda: azure.compute.virtual_machine_scale_sets.get(GROUP, "uniform"))
    left = [resource.id for resource in azure.resources.resources.list() if f"/{GROUP}/" in resource.id]
    same("what is left in the subscription", left, [])
