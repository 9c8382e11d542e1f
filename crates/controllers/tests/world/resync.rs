//! The cloud is compared periodically, and Services get events about differences (D1).

use std::time::Duration;

use cloud::{Drifted, Notice};
use controllers::Options;
use k8s::ObjectKey;
use serde_json::json;

use crate::world::{World, seconds};

#[tokio::test(start_paused = true)]
async fn the_cloud_is_looked_at_each_period_and_sooner_where_something_is_left() {
    let mut world = World::new();
    world.start(World::services()).await;
    seconds(660).await;
    let [first, second] = world.cloud.looks()[..] else { panic!("{:?}", world.cloud.looks()) };
    assert_eq!(second - first, 300);
    world.cloud.look_again_after(20);
    seconds(300).await;
    let looks = world.cloud.looks();
    assert_eq!(looks[3] - looks[2], 20, "{looks:?}");
}

#[tokio::test(start_paused = true)]
async fn a_period_of_zero_looks_never_and_what_is_found_otherwise_is_reported() {
    let mut world = World::new();
    let options = Options { azure_resync_period: Duration::ZERO, ..World::services() };
    world.start(options).await;
    world.service("web", json!({}));
    world.service("api", json!({}));
    seconds(10).await;
    let before = (world.cloud.ensures("web"), world.cloud.ensures("api"));
    for (name, ensure) in [("web", true), ("api", false)] {
        let service = ObjectKey::new("default", name);
        let notice = Notice {
            service: service.clone(),
            warning: !ensure,
            reason: "LoadBalancerRepaired",
            message: "something else had changed it".to_owned(),
        };
        world.cloud.drift(Drifted { service, notices: vec![notice], ensure });
    }
    seconds(3600).await;
    assert_eq!(world.cloud.looks(), Vec::<u64>::new());
    assert_eq!(world.cloud.ensures("web"), before.0 + 1);
    assert_eq!(world.cloud.ensures("api"), before.1, "nothing has to be done");
    assert_eq!(world.count_of("web", "LoadBalancerRepaired"), 1);
    let event = "azure-cloud-provider Warning LoadBalancerRepaired: something else had changed it";
    assert_eq!(world.events("api").last().unwrap(), event);
}
