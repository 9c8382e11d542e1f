"""The examples of all resource types of the simulated Azure, which `cargo xtask sdk` writes into a file."""
import io
import json

from proof import holds, same, step

EXAMPLES_GROUP = "sdk-examples"
JSON = "application/json"


@step("the example of each type is written, read back and deleted")
def every_type(azure):
    # The assignment of a role names a principal that the directory has.
    text = azure.examples.read_text().replace("{principal}", azure.object_id())
    puts = [request for request in json.loads(text) if request["method"] == "PUT"]
    holds("there are many examples", len(puts) > 70)
    azure.resources.resource_groups.create_or_update(EXAMPLES_GROUP, {"location": azure.region})
    resources = azure.resources.resources
    for put in puts:
        where = {"resource_id": put["path"].lstrip("/"), "api_version": put["apiVersion"]}
        body = io.BytesIO(json.dumps(put["body"]).encode())
        resources.begin_create_or_update_by_id(parameters=body, content_type=JSON, **where).result()
        # The value of a secret is read at its vault alone.
        if "/secrets/" not in put["path"]:
            name = put["path"].rsplit("/", 1)[-1]
            same("the name", resources.get_by_id(**where).name.rsplit("/", 1)[-1], name)
    for lock in (put for put in puts if "/locks/" in put["path"]):
        resources.begin_delete_by_id(lock["path"].lstrip("/"), api_version=lock["apiVersion"]).result()
    azure.resources.resource_groups.begin_delete(EXAMPLES_GROUP).result()
    holds("the group is gone", not azure.resources.resource_groups.check_existence(EXAMPLES_GROUP))
