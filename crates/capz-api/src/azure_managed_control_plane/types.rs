//! The fields of an AzureManagedControlPlane.

use std::collections::BTreeMap;

use super::access::{AadProfile, ApiServerAccessProfile};
use super::autoscaler::AutoscalerProfile;
use super::extension::AksExtension;
use super::network::{LoadBalancerProfile, ManagedVirtualNetwork};
use super::security::ManagedSecurityProfile;
use crate::common::{ApiEndpoint, Condition, Future, Initialization, ObjectReference, Tags, V1Beta2Status};
use crate::object::object;

object! {
    /// The desired state of a cluster that Azure manages.
    AzureManagedControlPlaneSpec {
        /// Sign-in with Microsoft Entra ID. It cannot be removed again.
        aad_profile: AadProfile,
        /// Tags of the cluster's resources, besides those that are always set.
        additional_tags: Tags,
        /// Add-ons. Set enabled to false to turn one off: an entry cannot be removed.
        addon_profiles: Vec<AddonProfile>,
        /// Who reaches the API server. Only authorizedIPRanges can be changed.
        api_server_access_profile: ApiServerAccessProfile,
        /// JSON merge patches, in YAML or JSON, that are applied to the cluster's ManagedCluster in this order.
        aso_managed_cluster_patches: Vec<String>,
        /// Automatic upgrades of the cluster.
        auto_upgrade_profile: AutoUpgradeProfile,
        /// Parameters of the cluster autoscaler.
        autoscaler_profile: AutoscalerProfile,
        /// The cloud: AzurePublicCloud, AzureChinaCloud or AzureUSGovernmentCloud.
        azure_environment: String,
        /// The endpoint of the API server. Set by the controller.
        control_plane_endpoint: ApiEndpoint,
        /// Whether the cluster has no accounts but those of Microsoft Entra ID. Needs aadProfile.
        disable_local_accounts: bool,
        /// The first part of the API server's name in DNS; the object's name if it is not set.
        dns_prefix: String,
        /// The address of the cluster's DNS service: one of the Cluster's range of services that ends in .10.
        #[serde(rename = "dnsServiceIP")]
        dns_service_ip: String,
        /// Whether the version of Azure's API with preview features is used.
        #[schemars(extend("default" = false))]
        enable_preview_features: bool,
        /// Extensions of the cluster.
        extensions: Vec<AksExtension>,
        /// The fleet that the cluster is a member of.
        fleets_member: FleetsMember,
        /// The proxy of the cluster's machines.
        http_proxy_config: HttpProxyConfig,
        /// The identity of the cluster's control plane.
        identity: ManagedIdentity,
        /// The AzureClusterIdentity with which the cluster's resources are created.
        #[schemars(required, extend("x-kubernetes-map-type" = "atomic"))]
        identity_ref: ObjectReference,
        /// The id of the user-assigned identity of the kubelets, with which they pull images.
        kubelet_user_assigned_identity: String,
        /// The outbound addresses and ports of the cluster's load balancer.
        load_balancer_profile: LoadBalancerProfile,
        /// The SKU of the cluster's load balancer: Standard or Basic.
        #[serde(rename = "loadBalancerSKU")]
        #[schemars(extend("default" = "Standard", "enum" = ["Basic", "Standard"]))]
        load_balancer_sku: String,
        /// The region.
        #[schemars(required)]
        location: String,
        /// Not used: Cluster API asks for it.
        machine_template: ManagedMachineTemplate,
        /// The dataplane of the network. cilium needs the plugin mode overlay and the network policy cilium.
        #[schemars(extend("enum" = ["azure", "cilium"]))]
        network_dataplane: String,
        /// The network plugin.
        #[schemars(extend("default" = "azure", "enum" = ["azure", "kubenet", "none"]))]
        network_plugin: String,
        /// The mode of the network plugin: overlay gives pods addresses outside of the virtual network.
        #[schemars(extend("enum" = ["overlay"]))]
        network_plugin_mode: String,
        /// The network policy engine.
        #[schemars(extend("enum" = ["azure", "calico", "cilium"]))]
        network_policy: String,
        /// The resource group of the cluster's machines, which Azure creates: MC_GROUP_NAME_LOCATION if it is not set.
        node_resource_group_name: String,
        /// The issuer of tokens for service accounts.
        oidc_issuer_profile: OidcIssuerProfile,
        /// How outbound traffic of machines leaves the network.
        #[schemars(extend("enum" = [
            "loadBalancer", "managedNATGateway", "userAssignedNATGateway", "userDefinedRouting"
        ]))]
        outbound_type: String,
        /// The resource group; the Cluster's name if it is not set.
        #[schemars(required)]
        resource_group_name: String,
        /// Security features.
        security_profile: ManagedSecurityProfile,
        /// The SKU of the control plane.
        sku: AksSku,
        /// The SSH key for people: a line of authorized_keys, in base64. If it is empty, a key is generated, and its
        /// private half is discarded; if it is not set, machines get none.
        ssh_public_key: String,
        /// The subscription; the controller's own if it is not set.
        #[serde(rename = "subscriptionID")]
        subscription_id: String,
        /// The version of Kubernetes.
        #[schemars(required, length(min = 2))]
        version: String,
        /// The virtual network and the subnet of the machines. It is created unless it exists.
        virtual_network: ManagedVirtualNetwork,
    }

    /// An add-on of a cluster.
    AddonProfile {
        /// The settings of the add-on.
        config: BTreeMap<String, String>,
        /// Whether the add-on is on.
        #[schemars(required)]
        enabled: bool,
        /// The name of the add-on, as Azure's API has it.
        #[schemars(required)]
        name: String,
    }

    /// The SKU of a control plane.
    AksSku {
        /// The tier: Free, or Standard, whose API server has an agreed uptime. Paid is the former name of Standard.
        #[schemars(required, extend("default" = "Free", "enum" = ["Free", "Paid", "Standard"]))]
        tier: String,
    }

    /// Automatic upgrades of a cluster.
    AutoUpgradeProfile {
        /// The versions to which Azure upgrades the cluster.
        #[schemars(extend("enum" = ["node-image", "none", "patch", "rapid", "stable"]))]
        upgrade_channel: String,
    }

    /// The membership of a cluster in a fleet.
    FleetsMember {
        /// The update group of the member.
        #[schemars(extend("default" = "default"))]
        group: String,
        /// The name of the fleet.
        #[schemars(required)]
        manager_name: String,
        /// The resource group of the fleet.
        #[schemars(required)]
        manager_resource_group: String,
        /// The name of the member; the Cluster's name if it is not set.
        name: String,
    }

    /// The proxy of a cluster's machines.
    HttpProxyConfig {
        /// The proxy for HTTP.
        http_proxy: String,
        /// The proxy for HTTPS.
        https_proxy: String,
        /// Destinations that are reached without the proxy.
        no_proxy: Vec<String>,
        /// The certificate of the proxy's authority.
        trusted_ca: String,
    }

    /// The identity of a cluster's control plane.
    ManagedIdentity {
        /// SystemAssigned, or UserAssigned.
        #[serde(rename = "type")]
        #[schemars(extend("default" = "SystemAssigned", "enum" = ["SystemAssigned", "UserAssigned"]))]
        kind: String,
        /// The id of a user-assigned identity.
        #[serde(rename = "userAssignedIdentityResourceID")]
        user_assigned_identity_resource_id: String,
    }

    /// Not used: Cluster API asks for it.
    ManagedMachineTemplate {}

    /// The issuer of tokens for service accounts.
    OidcIssuerProfile {
        /// Whether there is one. It cannot be turned off again.
        #[schemars(extend("default" = false))]
        enabled: bool,
    }

    /// The observed state of a cluster that Azure manages.
    AzureManagedControlPlaneStatus {
        /// What is complete, for Cluster API's contract v1beta2.
        initialization: Initialization,
        /// The version of Kubernetes to which Azure has upgraded the cluster.
        #[schemars(length(min = 2))]
        auto_upgrade_version: String,
        /// Conditions of the cluster and its parts.
        conditions: Vec<Condition>,
        /// Whether the API server has answered.
        initialized: bool,
        /// Operations of Azure that had not ended at the last reconcile.
        long_running_operation_states: Vec<Future>,
        /// The issuer of tokens for service accounts.
        oidc_issuer_profile: OidcIssuerProfileStatus,
        /// Whether the cluster exists and runs.
        ready: bool,
        /// The version of Kubernetes.
        version: String,
        /// What Cluster API's contract v1beta2 asks.
        v1beta2: V1Beta2Status,
    }

    /// The observed issuer of tokens for service accounts.
    OidcIssuerProfileStatus {
        /// Its URL.
        #[serde(rename = "issuerURL")]
        issuer_url: String,
    }
}
