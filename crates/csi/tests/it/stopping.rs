//! The end of calls and of a driver (section 2.1 of the specification of the drivers).

use std::time::Duration;

use csi::v1::DeleteVolumeRequest;
use logs::captured::Captured;
use tokio::time::Instant;
use tonic::{Code, Request};

use crate::driver::{Running, connect};

fn volume() -> DeleteVolumeRequest {
    DeleteVolumeRequest { volume_id: "vol-1".to_owned(), ..DeleteVolumeRequest::default() }
}

/// Waits until the deletion is counted as failed.
async fn failed_once(running: &Running) {
    let counted =
        "azuredisk_csi_driver_operations_total{operation=\"controller_delete_volume\",success=\"false\"} 1";
    while !running.metrics.encode().contains(counted) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_call_ends_when_its_caller_has_gone() {
    let (captured, _guard) = Captured::of_this_thread();
    let mut running = Running::start().await;
    let mut client = running.controller().await;
    let call = tokio::spawn(async move { client.delete_volume(volume()).await });
    running.begins.recv().await.unwrap();
    assert!(!captured.text().contains("a call failed"), "{}", captured.text());

    call.abort();
    failed_once(&running).await;
    assert!(captured.text().contains("status=\"Cancelled\""), "{}", captured.text());
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_when_its_caller_has_waited_as_long_as_it_wanted() {
    let running = Running::start().await;
    let mut request = Request::new(volume());
    request.set_timeout(Duration::from_secs(30));
    let status = running.controller().await.delete_volume(request).await.unwrap_err();
    assert!(matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded), "{status}");
    failed_once(&running).await;
}

#[tokio::test]
async fn a_call_in_progress_is_answered_after_the_stop_and_no_new_one_is_taken() {
    let mut running = Running::start().await;
    let mut client = running.controller().await;
    let call = tokio::spawn(async move { client.delete_volume(volume()).await });
    running.begins.recv().await.unwrap();

    running.stop.cancel();
    while connect(&running.socket).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!running.ended.is_finished());
    running.deleting.go_on.notify_one();
    call.await.unwrap().unwrap();
    running.ended.await.unwrap().unwrap();
}

/// On paused time: the clock moves on when all wait.
#[tokio::test(start_paused = true)]
async fn a_call_without_end_does_not_keep_a_driver_from_its_end() {
    let mut running = Running::start().await;
    let mut client = running.controller().await;
    let _call = tokio::spawn(async move { client.delete_volume(volume()).await });
    running.begins.recv().await.unwrap();

    let stopped = Instant::now();
    running.stop.cancel();
    running.ended.await.unwrap().unwrap();
    assert_eq!(stopped.elapsed().as_secs(), 25);
}
