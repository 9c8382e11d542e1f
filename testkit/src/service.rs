//! Services of type LoadBalancer, as their owners write them.

use serde_json::{Value, json};

/// A Service of type LoadBalancer, named `namespace/name`, with one TCP port 80 unless others are added.
pub fn service(key: &str) -> ServiceBuilder {
    let (namespace, name) = key.split_once('/').expect("a Service is called namespace/name");
    ServiceBuilder {
        object: json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": namespace, "name": name, "annotations": {}},
            "spec": {"type": "LoadBalancer", "selector": {"app": name}},
        }),
        ports: vec![],
    }
}

/// Builds a Service.
#[derive(Debug, Clone)]
pub struct ServiceBuilder {
    object: Value,
    ports: Vec<Value>,
}

impl ServiceBuilder {
    /// Adds a TCP port.
    #[must_use]
    pub fn tcp(self, port: u16) -> Self {
        self.port("TCP", port)
    }

    /// Adds a UDP port.
    #[must_use]
    pub fn udp(self, port: u16) -> Self {
        self.port("UDP", port)
    }

    fn port(mut self, protocol: &str, port: u16) -> Self {
        let name = format!("{}-{port}", protocol.to_ascii_lowercase());
        self.ports.push(json!({"name": name, "protocol": protocol, "port": port}));
        self
    }

    /// Adds an annotation `service.beta.kubernetes.io/KEY`.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.object["metadata"]["annotations"][format!("service.beta.kubernetes.io/{key}")] = value.into();
        self
    }

    /// Makes it reachable only inside the virtual network.
    #[must_use]
    pub fn internal(self) -> Self {
        self.annotation("azure-load-balancer-internal", "true")
    }

    /// Adds an address of each family.
    #[must_use]
    pub fn both_families(mut self) -> Self {
        self.object["spec"]["ipFamilyPolicy"] = "RequireDualStack".into();
        self
    }

    /// Allows only these prefixes.
    #[must_use]
    pub fn source_ranges(mut self, ranges: &[&str]) -> Self {
        self.object["spec"]["loadBalancerSourceRanges"] = json!(ranges);
        self
    }

    /// Keeps traffic on the node at which it arrives (`externalTrafficPolicy: Local`).
    #[must_use]
    pub fn local(mut self) -> Self {
        self.object["spec"]["externalTrafficPolicy"] = "Local".into();
        self
    }

    /// The manifest.
    pub fn manifest(self) -> Value {
        let mut this = if self.ports.is_empty() { self.tcp(80) } else { self };
        this.object["spec"]["ports"] = Value::Array(this.ports);
        this.object
    }
}
