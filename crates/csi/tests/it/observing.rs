//! What is logged and counted of a call (sections 2.1 and 2.6 of the specification of the drivers).

use std::collections::HashMap;

use csi::v1::controller_client::ControllerClient;
use csi::v1::identity_client::IdentityClient;
use csi::v1::node_client::NodeClient;
use csi::v1::{
    CreateVolumeRequest, GetPluginInfoRequest, ListVolumesRequest, NodeGetCapabilitiesRequest, ProbeRequest,
    VolumeContentSource,
};
use logs::captured::Captured;
use tonic::Code;

use crate::driver::{Running, driver};

fn volume(name: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.to_owned(),
        secrets: HashMap::from([("account-key".to_owned(), "hunter2".to_owned())]),
        parameters: HashMap::from([("skuName".to_owned(), "hunter3".to_owned())]),
        ..CreateVolumeRequest::default()
    }
}

/// The lines about calls on these levels.
fn lines(captured: &Captured, levels: &[&str]) -> Vec<String> {
    let text = captured.text();
    let lines = text.lines().filter(|line| line.contains(" csi::"));
    let of_level = |line: &&str| line.split_whitespace().nth(1).is_some_and(|level| levels.contains(&level));
    lines.filter(of_level).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_call_is_logged_once_without_its_secrets_and_counted_once() {
    let (captured, _guard) = Captured::of_this_thread();
    let running = Running::start().await;
    let answer = running.controller().await.create_volume(volume("vol-1")).await.unwrap().into_inner();
    assert_eq!(answer.volume.unwrap().volume_id, "vol-1");

    let lines = lines(&captured, &["TRACE", "DEBUG", "INFO", "WARN", "ERROR"]);
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(line.contains(" INFO ") && line.contains("answered a call"), "{line}");
    for field in ["method=\"/csi.v1.Controller/CreateVolume\"", "duration_ms=", "vol-1", "skuName"] {
        assert!(line.contains(field), "{field} is missing in {line}");
    }
    // The line is within the span of the call.
    for field in ["Call{otel.name=\"csi.v1.Controller/CreateVolume\"", "rpc.grpc.status_code=0}"] {
        assert!(line.contains(field), "{field} is missing in {line}");
    }
    let text = captured.text();
    assert!(!text.contains("hunter"), "{text}");
    assert!(!text.contains("account-key"), "{text}");

    let metrics = running.metrics.encode();
    let labels = "operation=\"controller_create_volume\",success=\"true\"";
    for line in [
        format!("azuredisk_csi_driver_operations_total{{{labels}}} 1"),
        format!("azuredisk_csi_driver_operation_duration_seconds_count{{{labels}}} 1"),
        format!(
            "azuredisk_csi_driver_operation_duration_seconds_labeled_count{{{labels},\
             storage_account_type=\"Premium_LRS\"}} 1"
        ),
    ] {
        assert!(metrics.contains(&line), "{line} is missing in\n{metrics}");
    }
}

#[tokio::test]
async fn a_driver_says_which_operation_a_request_turned_out_to_be() {
    let (services, metrics, ..) = driver();
    let source = Some(VolumeContentSource::default());
    let request = CreateVolumeRequest { volume_content_source: source, ..volume("vol-1") };
    ControllerClient::new(services).create_volume(request).await.unwrap();
    let metrics = metrics.encode();
    assert!(
        metrics.contains("{operation=\"controller_create_volume_from_snapshot\",success=\"true\"} 1"),
        "{metrics}"
    );
    assert!(!metrics.contains("operation=\"controller_create_volume\""), "{metrics}");
}

/// A status arrives with its code, as much of its words as an event takes, and the metadata beside them.
#[tokio::test]
async fn a_failure_reaches_the_caller_the_log_and_the_metrics() {
    let (captured, _guard) = Captured::of_this_thread();
    let running = Running::start().await;
    let status = running.controller().await.create_volume(volume("bad")).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().len() <= 900 && status.message().contains("xx … xx"), "{}", status.message());
    assert_eq!(status.metadata().get("after").unwrap(), "12");

    let lines = lines(&captured, &["TRACE", "DEBUG", "INFO", "WARN", "ERROR"]);
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(line.contains(" WARN ") && line.contains("status=\"ResourceExhausted\""), "{line}");
    assert!(line.contains("rpc.grpc.status_code=8"), "{line}");
    assert!(line.contains("error=\"xx") && line.contains("bad") && !line.contains("hunter"), "{line}");
    let metrics = running.metrics.encode();
    let line =
        "azuredisk_csi_driver_operations_total{operation=\"controller_create_volume\",success=\"false\"} 1";
    assert!(metrics.contains(line), "{metrics}");
}

/// What a driver does not implement is answered as the interface wants it.
#[tokio::test]
async fn a_method_that_a_driver_has_not_is_unimplemented() {
    let (services, ..) = driver();
    let status =
        ControllerClient::new(services).list_volumes(ListVolumesRequest::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
}

#[tokio::test]
async fn frequent_calls_are_logged_on_the_lowest_level_and_not_counted() {
    let (captured, _guard) = Captured::of_this_thread();
    let (services, metrics, ..) = driver();
    let mut identity = IdentityClient::new(services.clone());
    identity.probe(ProbeRequest {}).await.unwrap();
    NodeClient::new(services).node_get_capabilities(NodeGetCapabilitiesRequest {}).await.unwrap();
    assert_eq!(lines(&captured, &["TRACE"]).len(), 2, "{}", captured.text());
    assert_eq!(lines(&captured, &["DEBUG", "INFO", "WARN", "ERROR"]).len(), 0, "{}", captured.text());

    identity.get_plugin_info(GetPluginInfoRequest {}).await.unwrap();
    assert_eq!(lines(&captured, &["INFO"]).len(), 1, "{}", captured.text());
    assert!(!metrics.encode().contains("operation="), "{}", metrics.encode());
}
