//! The service Identity: which plugin this is, and what it can do.

use tonic::{Request, Response, Status};

use crate::v1::identity_server::Identity;
use crate::v1::plugin_capability::{self, Service, VolumeExpansion};
use crate::v1::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest, GetPluginInfoResponse,
    PluginCapability, ProbeRequest, ProbeResponse,
};

/// A plugin. It is ready as long as it runs.
#[derive(Debug, Clone, Default)]
pub struct Plugin {
    /// Its name, such as `disk.csi.azure.com`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The services that it has beside this one and Node, and what its volumes have.
    pub services: Vec<plugin_capability::service::Type>,
    /// When its volumes can grow.
    pub expansion: Vec<plugin_capability::volume_expansion::Type>,
}

#[tonic::async_trait]
impl Identity for Plugin {
    async fn get_plugin_info(
        &self,
        _: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        if self.name.is_empty() {
            return Err(Status::unavailable("the driver has no name; set --drivername"));
        }
        if self.version.is_empty() {
            return Err(Status::unavailable("the driver has no version"));
        }
        Ok(Response::new(GetPluginInfoResponse {
            name: self.name.clone(),
            vendor_version: self.version.clone(),
            ..GetPluginInfoResponse::default()
        }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        use plugin_capability::Type;
        let services = self.services.iter().map(|kind| Type::Service(Service { r#type: (*kind).into() }));
        let expansion = self
            .expansion
            .iter()
            .map(|kind| Type::VolumeExpansion(VolumeExpansion { r#type: (*kind).into() }));
        let capabilities = services.chain(expansion).map(|kind| PluginCapability { r#type: Some(kind) });
        Ok(Response::new(GetPluginCapabilitiesResponse { capabilities: capabilities.collect() }))
    }

    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        Ok(Response::new(ProbeResponse { ready: Some(true) }))
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    /// Section 2.1 of the specification of the drivers.
    #[tokio::test]
    async fn a_plugin_without_name_or_version_is_unavailable() {
        for (name, version, code) in [
            ("", "1", Some(Code::Unavailable)),
            ("disk.csi.azure.com", "", Some(Code::Unavailable)),
            ("disk.csi.azure.com", "1", None),
        ] {
            let plugin = Plugin { name: name.to_owned(), version: version.to_owned(), ..Plugin::default() };
            let answer = plugin.get_plugin_info(Request::new(GetPluginInfoRequest {})).await;
            assert_eq!(answer.err().map(|status| status.code()), code, "{name} {version}");
        }
    }
}
