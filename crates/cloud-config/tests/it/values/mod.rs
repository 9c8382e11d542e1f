//! The values of keys in a configuration, as texts.

use std::time::Duration;

use cloud_config::{CloudConfig, Secret};

/// The value of a key with an effect: the default if it is not set, unless the default is another key's value.
pub fn value(c: &CloudConfig, key: &str) -> String {
    let seconds = |duration: Duration| duration.as_secs().to_string();
    let hidden = |secret: &Secret| if secret.is_empty() { String::new() } else { secret.to_string() };
    match key {
        "cloud" => c.cloud.clone(),
        "resourceManagerEndpoint" => c.resource_manager_endpoint.clone(),
        "disableAzureStackCloud" => c.disable_azure_stack_cloud.to_string(),
        "userAgent" => c.user_agent.clone(),
        "tenantId" => c.tenant_id.clone(),
        "networkResourceTenantID" => c.network_resource_tenant_id.clone(),
        "subscriptionId" => c.subscription_id.clone(),
        "networkResourceSubscriptionID" => c.network_resource_subscription_id.clone(),
        "enableMinimumRetryAfter" => c.enable_minimum_retry_after.to_string(),
        "aadClientId" => c.aad_client_id.clone(),
        "aadClientSecret" => hidden(&c.aad_client_secret),
        "aadClientCertPath" => c.aad_client_cert_path.clone(),
        "aadClientCertPassword" => hidden(&c.aad_client_cert_password),
        "useManagedIdentityExtension" => c.use_managed_identity_extension.to_string(),
        "userAssignedIdentityID" => c.user_assigned_identity_id.clone(),
        "useFederatedWorkloadIdentityExtension" => c.use_federated_workload_identity_extension.to_string(),
        "aadFederatedTokenFile" => c.aad_federated_token_file.clone(),
        "cloudConfigType" => c.cloud_config_type.to_string(),
        "disableCloudProvider" => c.disable_cloud_provider.to_string(),
        "aadMSIDataPlaneIdentityPath" => c.aad_msi_data_plane_identity_path.clone(),
        "resourceGroup" => c.resource_group.clone(),
        "location" => c.location.clone(),
        "extendedLocationName" => c.extended_location_name.clone(),
        "extendedLocationType" => c.extended_location_type.clone(),
        "vnetName" => c.vnet_name.clone(),
        "vnetResourceGroup" => c.vnet_resource_group.clone(),
        "subnetName" => c.subnet_name.clone(),
        "securityGroupName" => c.security_group_name.clone(),
        "securityGroupResourceGroup" => c.security_group_resource_group.clone(),
        "routeTableName" => c.route_table_name.clone(),
        "routeTableResourceGroup" => c.route_table_resource_group.clone(),
        "privateLinkServiceResourceGroup" => c.private_link_service_resource_group.clone(),
        "loadBalancerName" => c.load_balancer_name.clone(),
        "loadBalancerResourceGroup" => c.load_balancer_resource_group.clone(),
        "primaryAvailabilitySetName" => c.primary_availability_set_name.clone(),
        "primaryScaleSetName" => c.primary_scale_set_name.clone(),
        "vmType" => c.vm_type.to_string(),
        "disableAvailabilitySetNodes" => c.disable_availability_set_nodes.to_string(),
        "enableVmssFlexNodes" => c.enable_vmss_flex_nodes.to_string(),
        "nodeInstanceNotFoundGracePeriodInSeconds" => seconds(c.node_instance_not_found_grace_period),
        "putVMSSVMBatchSize" => c.put_vmss_vm_batch_size.to_string(),
        "loadBalancerSku" => c.load_balancer_sku.to_string(),
        "excludeMasterFromStandardLB" => c.exclude_master_from_standard_lb.to_string(),
        "disableOutboundSNAT" => c.disable_outbound_snat.to_string(),
        "maximumLoadBalancerRuleCount" => c.maximum_load_balancer_rule_count.to_string(),
        "preConfiguredBackendPoolLoadBalancerTypes" => {
            c.pre_configured_backend_pool_load_balancer_types.to_string()
        }
        "loadBalancerBackendPoolConfigurationType" => {
            c.load_balancer_backend_pool_configuration_type.to_string()
        }
        "enableLoadBalancerAdminState" => c.enable_load_balancer_admin_state.to_string(),
        "enableMigrateToIPBasedBackendPoolAPI" => c.enable_migrate_to_ip_based_backend_pool_api.to_string(),
        "enableIPTagMutationForExistingPublicIP" => {
            c.enable_ip_tag_mutation_for_existing_public_ip.to_string()
        }
        "clusterServiceLoadBalancerHealthProbeMode" => {
            c.cluster_service_load_balancer_health_probe_mode.to_string()
        }
        "clusterServiceSharedLoadBalancerHealthProbePort" => {
            c.cluster_service_shared_load_balancer_health_probe_port.to_string()
        }
        "clusterServiceSharedLoadBalancerHealthProbePath" => {
            c.cluster_service_shared_load_balancer_health_probe_path.clone()
        }
        "loadBalancerBackendPoolUpdateIntervalInSeconds" => {
            seconds(c.load_balancer_backend_pool_update_interval)
        }
        "multipleStandardLoadBalancerConfigurations" => {
            c.multiple_standard_load_balancer_configurations.len().to_string()
        }
        "serviceGatewayEnabled" => c.service_gateway_enabled.to_string(),
        "tags" | "tagsMap" => {
            c.tags.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
        }
        "systemTags" => c.system_tags.join(","),
        "listVmssVirtualMachinesWithoutInstanceView" => {
            c.list_vmss_virtual_machines_without_instance_view.to_string()
        }
        "cloudProviderBackoff" => c.backoff.enabled.to_string(),
        "cloudProviderBackoffRetries" => c.backoff.retries.to_string(),
        "cloudProviderBackoffDuration" => seconds(c.backoff.duration),
        other => panic!("{other} has an effect and no value here"),
    }
}
