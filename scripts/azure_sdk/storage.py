"""Storage accounts, shares and containers (the guides of azure-mgmt-storage, azure-storage-file-share and -blob)."""
from azure.core.exceptions import ClientAuthenticationError, ResourceExistsError, ResourceNotFoundError
from azure.mgmt.storage import StorageManagementClient
from azure.mgmt.storage import models as storage_models
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient

from proof import GROUP, holds, refused, same, step

ACCOUNT = "sdkproofstorage"


def storage(azure):
    return azure.client(StorageManagementClient)


def account_key(azure):
    return storage(azure).storage_accounts.list_keys(GROUP, ACCOUNT).keys_property[0].value


def shares(azure, key=None):
    return ShareServiceClient(f"https://{ACCOUNT}.file.core.windows.net", credential=key or account_key(azure))


@step("a storage account, under a name that was free")
def account(azure):
    accounts = storage(azure).storage_accounts
    asked = storage_models.StorageAccountCheckNameAvailabilityParameters(
        name=ACCOUNT, type="Microsoft.Storage/storageAccounts"
    )
    holds("the name is free", accounts.check_name_availability(asked).name_available)
    made = accounts.begin_create(
        GROUP,
        ACCOUNT,
        storage_models.StorageAccountCreateParameters(
            sku=storage_models.Sku(name="Standard_LRS"), kind="StorageV2", location=azure.region
        ),
    ).result()
    same("where files are", made.properties.primary_endpoints.file, f"https://{ACCOUNT}.file.core.windows.net/")
    holds("the name is taken", not accounts.check_name_availability(asked).name_available)
    same("accounts", [account.name for account in accounts.list_by_resource_group(GROUP)], [ACCOUNT])


@step("keys of an account: two, and a new one in place of an old one")
def keys(azure):
    accounts = storage(azure).storage_accounts
    before = {key.key_name: key.value for key in accounts.list_keys(GROUP, ACCOUNT).keys_property}
    same("names", sorted(before), ["key1", "key2"])
    renewed = accounts.regenerate_key(
        GROUP, ACCOUNT, storage_models.StorageAccountRegenerateKeyParameters(key_name="key1")
    )
    after = {key.key_name: key.value for key in renewed.keys_property}
    holds("the first is new", before["key1"] != after["key1"])
    same("the second", after["key2"], before["key2"])
    refused(ClientAuthenticationError, 403, lambda: shares(azure, before["key1"]).get_service_properties())


@step("a share and a container by Resource Manager")
def by_resource_manager(azure):
    file_shares = storage(azure).file_shares
    made = file_shares.create(GROUP, ACCOUNT, "plans", storage_models.FileShare(
        file_share_properties=storage_models.FileShareProperties(share_quota=5)))
    same("quota", made.file_share_properties.share_quota, 5)
    same("shares", [share.name for share in file_shares.list(GROUP, ACCOUNT)], ["plans"])
    file_shares.delete(GROUP, ACCOUNT, "plans")
    refused(ResourceNotFoundError, 404, lambda: file_shares.get(GROUP, ACCOUNT, "plans"))
    containers = storage(azure).blob_containers
    containers.create(GROUP, ACCOUNT, "pictures", storage_models.BlobContainer())
    same("containers", [container.name for container in containers.list(GROUP, ACCOUNT)], ["pictures"])


@step("shares by the file service: quota, metadata, snapshot")
def by_file_service(azure):
    service = shares(azure)
    share = service.create_share("notes", quota=3, metadata={"of": "somebody"})
    refused(ResourceExistsError, 409, share.create_share)
    share.set_share_quota(7)
    properties = share.get_share_properties()
    same("quota", properties.quota, 7)
    same("metadata", properties.metadata, {"of": "somebody"})
    snapshot = share.create_snapshot()["snapshot"]
    listed = [(entry.name, entry.snapshot) for entry in service.list_shares(include_snapshots=True)]
    same("shares and snapshots", sorted(listed, key=str), sorted([("notes", None), ("notes", snapshot)], key=str))
    refused(ResourceExistsError, 409, share.delete_share)
    share.delete_share(delete_snapshots=True)
    refused(ResourceNotFoundError, 404, share.get_share_properties)


@step("directories and files of a share")
def files(azure):
    share = shares(azure).create_share("papers")
    share.create_directory("letters")
    letter = share.get_file_client("letters/one.txt")
    letter.upload_file(b"Dear reader")
    same("the file", letter.download_file().readall(), b"Dear reader")
    same("its size", letter.get_file_properties().size, 11)
    names = [(entry["name"], entry["is_directory"]) for entry in share.list_directories_and_files()]
    same("in the share", names, [("letters", True)])
    names = [entry["name"] for entry in share.list_directories_and_files("letters")]
    same("in the directory", names, ["one.txt"])
    letter.delete_file()
    refused(ResourceNotFoundError, 404, letter.get_file_properties)
    share.delete_share()


@step("blobs of a container, by key and by token")
def blobs(azure):
    address = f"https://{ACCOUNT}.blob.core.windows.net"
    container = BlobServiceClient(address, credential=account_key(azure)).create_container("photos")
    blob = container.get_blob_client("2026/sea.txt")
    blob.upload_blob(b"blue", metadata={"of": "somebody"})
    same("the blob", blob.download_blob().readall(), b"blue")
    refused(ResourceExistsError, 409, lambda: blob.upload_blob(b"green"))
    blob.upload_blob(b"green", overwrite=True)
    same("the blob", blob.download_blob().readall(), b"green")
    same("metadata", blob.get_blob_properties().metadata, {})
    same("in the container", [entry.name for entry in container.list_blobs(name_starts_with="2026/")], ["2026/sea.txt"])
    by_token = BlobServiceClient(address, credential=azure.credential).get_container_client("photos")
    same("the same by token", by_token.get_blob_client("2026/sea.txt").download_blob().readall(), b"green")
    blob.delete_blob()
    refused(ResourceNotFoundError, 404, blob.get_blob_properties)


@step("an account goes with all that is in it")
def account_goes(azure):
    accounts = storage(azure).storage_accounts
    accounts.delete(GROUP, ACCOUNT)
    refused(ResourceNotFoundError, 404, lambda: accounts.get_properties(GROUP, ACCOUNT))
