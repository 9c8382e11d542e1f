"""Common parts of all steps: Azure's endpoints, the registration of steps, and checks."""
import base64
import json
import urllib.request

from azure.core.exceptions import HttpResponseError
from azure.identity import ClientSecretCredential
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.resource.resources import ResourceManagementClient

GROUP = "sdk-proof"


class Azure:
    """Azure's endpoints, the credentials, and one client for each provider."""

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
        # Without instance discovery the library does not ask the public cloud whether the authority is valid.
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
        """Sends a request to the simulator's control API."""
        request = urllib.request.Request(
            f"{self.control_url}/_cerulean/{what}",
            data=json.dumps(body).encode(),
            method=method,
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()

    def object_id(self):
        """The object ID of the application, for role assignments and access policies."""
        payload = self.credential.get_token(self.endpoint + "/.default").token.split(".")[1]
        return json.loads(base64.urlsafe_b64decode(payload + "=="))["oid"]

    def id_of(self, rest):
        return f"/subscriptions/{self.subscription}/resourceGroups/{GROUP}/providers/{rest}"


STEPS = []


def step(words):
    """Registers a step with the text of its output line."""

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
    """Returns the error of `call`, which must have exactly this class and status."""
    try:
        call()
    except HttpResponseError as error:
        same("the class of the error", type(error).__name__, kind.__name__)
        same("the status", error.status_code, status)
        return error
    raise AssertionError(f"{kind.__name__} was expected, and nothing was refused")


def reference(kind, resource_id):
    return kind(id=resource_id)
