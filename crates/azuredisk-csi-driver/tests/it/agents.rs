//! The user agent of calls to Azure (sections 3.4 and 3.6 of the specification of the drivers).

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::map_request;
use azuredisk_csi_driver::controller::{ControllerOptions, KubernetesView};
use parking_lot::Mutex;
use testkit::KillSwitch;
use tokio_util::sync::CancellationToken;

use crate::world::{World, create, parameters};

/// CSI-092. Sections 3.4 and 3.6: the calls for a request have the user agent of its class; those of others, also at the same time, have
/// the program's. One that no header may have is passed over.
#[tokio::test(start_paused = true)]
async fn the_calls_of_a_request_have_the_user_agent_of_its_class() {
    const USUAL: &str = "kubernetes-cloudprovider/";
    let world = World::new();
    let seen = Arc::<Mutex<Vec<(String, String)>>>::default();
    let sees = Arc::clone(&seen);
    let router = world.azure.router().layer(map_request(move |request: Request| {
        let agent = request.headers()["user-agent"].to_str().unwrap().to_owned();
        sees.lock().push((request.uri().path().to_lowercase(), agent));
        async move { request }
    }));
    let transport = KillSwitch::never().transport_to(router);
    let options = ControllerOptions::default();
    let driver = world.driver_of(transport, KubernetesView::none(), options, CancellationToken::new());
    let with_agent = |name: &str, agent: &str| {
        let mut request = create(name, 8);
        request.parameters = parameters(&[("userAgent", agent)]);
        request
    };
    let (own, usual, odd) = tokio::join!(
        driver.create(with_agent("own", "team-a/1")),
        driver.create(create("usual", 8)),
        driver.create(with_agent("odd", "a\nb")),
    );
    let own = own.unwrap().volume_id;
    driver.snapshot("taken", &own, &[("userAgent", "team-b/1")]).await.unwrap();
    driver.delete(&usual.unwrap().volume_id).await.unwrap();
    driver.delete(&odd.unwrap().volume_id).await.unwrap();
    let seen = seen.lock();
    for (path, expected) in [
        ("/disks/own", "team-"),
        ("/disks/usual", USUAL),
        ("/disks/odd", USUAL),
        ("/snapshots/taken", "team-b/1"),
    ] {
        let of: Vec<_> = seen.iter().filter(|(other, _)| other.ends_with(path)).collect();
        assert!(!of.is_empty() && of.iter().all(|(_, agent)| agent.starts_with(expected)), "{path}: {of:?}");
    }
    let calls = |agent: &str| seen.iter().filter(|(_, other)| other == agent).count();
    assert!(calls("team-a/1") >= 2 && calls("team-b/1") >= 2, "{seen:?}");
}
