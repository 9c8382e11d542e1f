//! Valid requests, which are then mutated.

use serde_json::{Value, json};

/// One request.
#[derive(Debug, Clone, Default)]
pub struct FuzzRequest {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

const SUBSCRIPTION: &str = "/subscriptions/00000000-0000-0000-0000-000000000000";

fn request(method: &str, path: String, body: &Value) -> FuzzRequest {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    FuzzRequest { method: method.to_owned(), path, headers: Vec::new(), body }
}

/// The requests, in an order in which all of them succeed.
pub fn requests() -> Vec<FuzzRequest> {
    let group = format!("{SUBSCRIPTION}/resourceGroups/fuzz");
    let network = |rest: &str| format!("{group}/providers/Microsoft.Network/{rest}");
    let compute = |rest: &str| format!("{group}/providers/Microsoft.Compute/{rest}");
    let reference = |id: String| json!({ "id": id });
    let mut all = vec![request(
        "PUT",
        format!("{group}?api-version=2021-04-01"),
        &json!({"location": "eastus", "tags": {"a": "b"}}),
    )];
    let mut made: Vec<(String, &str, Value)> = Vec::new();
    let mut put = |id: String, version: &'static str, mut body: Value| {
        body["location"] = "eastus".into();
        made.push((id, version, body));
    };
    let (net, comp) = ("2025-05-01", "2025-04-01");
    put(
        format!("{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/me"),
        "2023-01-31",
        json!({}),
    );
    put(network("applicationSecurityGroups/asg"), net, json!({"properties": {}}));
    put(
        network("networkSecurityGroups/nsg"),
        net,
        json!({"properties": {"securityRules": [{"name": "web", "properties": {
            "priority": 500, "direction": "Inbound", "access": "Allow", "protocol": "Tcp",
            "sourceAddressPrefixes": ["203.0.113.0/24", "10.0.0.0/8"], "sourcePortRange": "*",
            "destinationAddressPrefix": "VirtualNetwork", "destinationPortRanges": ["80", "443-444"]}}]}}),
    );
    put(
        network("routeTables/routes"),
        net,
        json!({"properties": {"disableBgpRoutePropagation": true, "routes": [{"name": "r", "properties": {
            "addressPrefix": "10.1.0.0/24", "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.0.0.4"}}]}}),
    );
    put(
        network("publicIPPrefixes/prefix"),
        net,
        json!({"sku": {"name": "Standard"}, "properties": {"prefixLength": 29, "publicIPAddressVersion": "IPv4"}}),
    );
    let public = |label: &str| {
        json!({"sku": {"name": "Standard"}, "zones": ["1", "2", "3"], "properties": {
            "publicIPAllocationMethod": "Static", "idleTimeoutInMinutes": 4, "dnsSettings": {"domainNameLabel": label}}})
    };
    put(network("publicIPAddresses/front"), net, public("front"));
    put(network("publicIPAddresses/nat"), net, public("nat"));
    put(
        network("natGateways/nat"),
        net,
        json!({"sku": {"name": "Standard"}, "properties": {"idleTimeoutInMinutes": 10,
            "publicIpAddresses": [reference(network("publicIPAddresses/nat"))]}}),
    );
    put(
        network("virtualNetworks/net"),
        net,
        json!({"properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16", "fd00::/48"]}, "dhcpOptions": {"dnsServers": ["10.0.0.4"]},
            "subnets": [{"name": "nodes", "properties": {"addressPrefix": "10.0.0.0/20",
                "networkSecurityGroup": reference(network("networkSecurityGroups/nsg")),
                "routeTable": reference(network("routeTables/routes")),
                "serviceEndpoints": [{"service": "Microsoft.Storage"}]}},
                {"name": "links", "properties": {"addressPrefix": "10.0.16.0/24", "privateLinkServiceNetworkPolicies": "Disabled",
                "natGateway": reference(network("natGateways/nat"))}}]}}),
    );
    put(
        network("virtualNetworks/net/subnets/more"),
        net,
        json!({"properties": {"addressPrefix": "10.0.32.0/24", "delegations": [{"name": "d",
            "properties": {"serviceName": "Microsoft.ContainerInstance/containerGroups"}}]}}),
    );
    let lb = network("loadBalancers/lb");
    let child = |rest: &str| reference(format!("{lb}/{rest}"));
    put(
        lb.clone(),
        net,
        json!({"sku": {"name": "Standard"}, "properties": {
            "frontendIPConfigurations": [
                {"name": "f", "properties": {"publicIPAddress": reference(network("publicIPAddresses/front"))}}],
            "backendAddressPools": [{"name": "p"}, {"name": "ips", "properties": {"virtualNetwork": reference(network("virtualNetworks/net")),
                "loadBalancerBackendAddresses": [{"name": "a", "properties": {"ipAddress": "10.0.0.9"}}]}}],
            "probes": [{"name": "h", "properties": {"protocol": "Http", "port": 80, "requestPath": "/", "intervalInSeconds": 5, "numberOfProbes": 1}}],
            "loadBalancingRules": [{"name": "r", "properties": {"protocol": "Tcp", "frontendPort": 80, "backendPort": 80,
                "disableOutboundSnat": true, "frontendIPConfiguration": child("frontendIPConfigurations/f"),
                "backendAddressPool": child("backendAddressPools/p"), "probe": child("probes/h")}}],
            "inboundNatRules": [{"name": "n", "properties": {"protocol": "Tcp", "frontendPort": 2222, "backendPort": 22,
                "frontendIPConfiguration": child("frontendIPConfigurations/f")}}],
            "outboundRules": [{"name": "o", "properties": {"protocol": "All", "allocatedOutboundPorts": 64,
                "frontendIPConfigurations": [child("frontendIPConfigurations/f")], "backendAddressPool": child("backendAddressPools/p")}}]}}),
    );
    let internal = network("loadBalancers/internal");
    put(
        internal.clone(),
        net,
        json!({"sku": {"name": "Standard"}, "properties": {"frontendIPConfigurations": [{"name": "i", "properties": {
            "privateIPAllocationMethod": "Static", "privateIPAddress": "10.0.16.10",
            "subnet": reference(network("virtualNetworks/net/subnets/links"))}}]}}),
    );
    put(
        network("networkInterfaces/nic"),
        net,
        json!({"properties": {"ipConfigurations": [{"name": "c", "properties": {"primary": true, "privateIPAllocationMethod": "Dynamic",
            "subnet": reference(network("virtualNetworks/net/subnets/nodes")),
            "loadBalancerBackendAddressPools": [child("backendAddressPools/p")],
            "applicationSecurityGroups": [reference(network("applicationSecurityGroups/asg"))]}}]}}),
    );
    put(
        network("privateLinkServices/pls"),
        net,
        json!({"properties": {"loadBalancerFrontendIpConfigurations": [reference(format!("{internal}/frontendIPConfigurations/i"))],
            "ipConfigurations": [{"name": "s", "properties": {"primary": true, "subnet": reference(network("virtualNetworks/net/subnets/links"))}}]}}),
    );
    put(
        network("privateEndpoints/pe"),
        net,
        json!({"properties": {"subnet": reference(network("virtualNetworks/net/subnets/nodes")),
            "privateLinkServiceConnections": [{"name": "c", "properties": {"privateLinkServiceId": network("privateLinkServices/pls")}}]}}),
    );
    put(
        compute("disks/disk"),
        "2025-01-02",
        json!({"sku": {"name": "Premium_LRS"}, "zones": ["1"], "properties": {"diskSizeGB": 32, "creationData": {"createOption": "Empty"}}}),
    );
    put(
        compute("snapshots/snapshot"),
        "2025-01-02",
        json!({"properties": {"incremental": true, "creationData": {"createOption": "Copy", "sourceResourceId": compute("disks/disk")}}}),
    );
    put(
        compute("availabilitySets/set"),
        comp,
        json!({"sku": {"name": "Aligned"}, "properties": {"platformFaultDomainCount": 2, "platformUpdateDomainCount": 5}}),
    );
    let os = json!({"computerName": "host", "adminUsername": "someone", "adminPassword": "Correct-Horse-7"});
    let storage = json!({"imageReference": {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"},
        "osDisk": {"createOption": "FromImage", "managedDisk": {"storageAccountType": "Premium_LRS"}}});
    put(
        compute("virtualMachines/vm"),
        comp,
        json!({"zones": ["1"], "properties": {"hardwareProfile": {"vmSize": "Standard_D2s_v3"}, "osProfile": os, "storageProfile": storage,
            "networkProfile": {"networkInterfaces": [{"id": network("networkInterfaces/nic"), "properties": {"primary": true}}]}}}),
    );
    let interfaces = json!({"networkApiVersion": "2020-11-01", "networkInterfaceConfigurations": [{"name": "nic", "properties": {"primary": true,
        "ipConfigurations": [{"name": "c", "properties": {"primary": true, "subnet": reference(network("virtualNetworks/net/subnets/nodes")),
            "loadBalancerBackendAddressPools": [child("backendAddressPools/p")]}}]}}]});
    for (name, mode) in [("uniform", "Uniform"), ("flexible", "Flexible")] {
        put(
            compute(&format!("virtualMachineScaleSets/{name}")),
            comp,
            json!({"sku": {"name": "Standard_D2s_v3", "capacity": 2}, "zones": ["1", "2"], "properties": {
                "orchestrationMode": mode, "platformFaultDomainCount": 1, "upgradePolicy": {"mode": "Manual"},
                "virtualMachineProfile": {"osProfile": {"computerNamePrefix": name, "adminUsername": "someone", "adminPassword": "Correct-Horse-7"},
                    "storageProfile": storage, "networkProfile": interfaces}}}),
        );
    }
    for (id, version, body) in &made {
        all.push(request("PUT", format!("{id}?api-version={version}"), body));
    }
    for (id, version, body) in &made {
        let list = id.rsplit_once('/').map_or(id.as_str(), |(list, _)| list);
        all.push(request("GET", format!("{id}?api-version={version}&$expand=instanceView"), &Value::Null));
        all.push(request(
            "GET",
            format!("{list}?api-version={version}&$top=3&$filter=name%20eq%20'x'"),
            &Value::Null,
        ));
        let changed = json!({"tags": {"changed": "yes"}, "properties": body["properties"]});
        all.push(request("PATCH", format!("{id}?api-version={version}"), &changed));
    }
    let uniform = compute("virtualMachineScaleSets/uniform");
    let attach = json!({"location": "eastus", "properties": {"storageProfile": {"dataDisks": [
        {"lun": 0, "createOption": "Attach", "managedDisk": {"id": compute("disks/disk")}}]}}});
    all.push(request("PUT", format!("{uniform}/virtualMachines/0?api-version={comp}"), &attach));
    for (path, body) in [
        (
            format!("{uniform}/virtualMachines/0/attachDetachDataDisks"),
            json!({"dataDisksToDetach": [{"diskId": compute("disks/disk")}]}),
        ),
        (format!("{uniform}/delete"), json!({"instanceIds": ["1"]})),
        (format!("{uniform}/manualupgrade"), json!({"instanceIds": ["*"]})),
        (format!("{uniform}/deallocate"), json!({"instanceIds": ["0"]})),
        (compute("virtualMachines/vm/powerOff"), Value::Null),
        (compute("virtualMachines/vm/start"), Value::Null),
        (format!("{lb}/migrateToIpBased"), json!({"pools": ["p"]})),
        (format!("{SUBSCRIPTION}/providers/Microsoft.Network/register"), Value::Null),
    ] {
        all.push(request("POST", format!("{path}?api-version={comp}"), &body));
    }
    for path in [
        format!("{uniform}/virtualMachines?api-version={comp}&$expand=instanceView"),
        format!(
            "{uniform}/virtualMachines/0/networkInterfaces/nic/ipconfigurations/c/publicipaddresses/p?api-version=2018-10-01"
        ),
        format!("{uniform}/networkInterfaces?api-version=2018-10-01"),
        format!("{uniform}/skus?api-version={comp}"),
        format!("{lb}/backendAddressPools/p?api-version={net}"),
        format!("{SUBSCRIPTION}?api-version=2021-04-01"),
        format!("{SUBSCRIPTION}/locations?api-version=2021-04-01"),
        format!("{SUBSCRIPTION}/resources?api-version=2021-04-01&$filter=tagName%20eq%20'a'"),
        format!("{SUBSCRIPTION}/providers?api-version=2021-04-01"),
        format!(
            "{SUBSCRIPTION}/providers/Microsoft.Compute/skus?api-version=2021-07-01&$filter=location%20eq%20'eastus'"
        ),
        format!("{SUBSCRIPTION}/providers/Microsoft.Compute/locations/eastus/usages?api-version={comp}"),
        format!(
            "{SUBSCRIPTION}/providers/Microsoft.Network/locations/eastus/operations/00000000-0000-0000-0000-000000000000?api-version={net}"
        ),
        "/subscriptions?api-version=2021-04-01".to_owned(),
        "/metadata/endpoints?api-version=2023-01-01".to_owned(),
        "/_cerulean/journal?after=3&format=lines".to_owned(),
        "/_cerulean/budgets".to_owned(),
    ] {
        all.push(request("GET", path, &Value::Null));
    }
    let fault = json!({"name": "f", "method": "PUT", "count": 1, "action": {"do": "fail", "status": 400, "code": "X"}});
    all.push(request("POST", "/_cerulean/faults".to_owned(), &fault));
    all.push(request("PUT", "/_cerulean/latency".to_owned(), &json!({"otherwiseMs": 5})));
    all.push(request("PUT", "/_cerulean/budgets".to_owned(), &json!({"reads": 1000.0})));
    for rest in ["virtualMachineScaleSets/uniform", "disks/disk"] {
        all.push(request("DELETE", format!("{}?api-version={comp}", compute(rest)), &Value::Null));
    }
    all.push(request("DELETE", format!("{group}?api-version=2021-04-01"), &Value::Null));
    for request in &mut all {
        if request.path.starts_with("/_cerulean/") || !request.body.is_empty() {
            request.headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
    }
    all
}
