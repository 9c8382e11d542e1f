"""What every room of the proof needs: where Azure is, how a step is registered, and how it says what is not so."""
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

    def object_id(self):
        """Who asks, as role assignments and access policies name it."""
        payload = self.credential.get_token(self.endpoint + "/.default").token.split(".")[1]
        return json.loads(base64.urlsafe_b64decode(payload + "=="))["oid"]

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
