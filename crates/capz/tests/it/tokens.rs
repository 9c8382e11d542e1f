//! Tokens that are dated by the clock of a world. The library dates those of a directory by the machine's clock.

use std::sync::Arc;
use std::time::Duration;

use arm::{Clock, Credential};
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::time::OffsetDateTime;
use serde_json::Value;

use crate::world::World;

/// What a token begins with; its end follows, in seconds since 1970.
const PREFIX: &str = "token-until-";

#[derive(Debug)]
struct Directory {
    clock: Clock,
    life: Duration,
}

#[async_trait::async_trait]
impl TokenCredential for Directory {
    async fn get_token(
        &self,
        _: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let end = (self.clock.since_1970() + self.life).as_secs();
        let expires = OffsetDateTime::UNIX_EPOCH + Duration::from_secs(end);
        Ok(AccessToken::new(format!("{PREFIX}{end}"), expires))
    }
}

/// A credential whose tokens are valid for so long.
pub fn issued(clock: &Clock, life: Duration) -> Credential {
    let source = Directory { clock: clock.clone(), life };
    Credential::from_source(Arc::new(source), "a directory on the clock of the world", clock.clone())
}

/// The seconds for which the token in a kubeconfig is still valid.
pub fn left(world: &World, secret: &str) -> i64 {
    let config: Value = serde_saphyr::from_str(&world.secret(secret, "value").unwrap()).unwrap();
    let token = config["users"][0]["user"]["token"].as_str().unwrap().to_owned();
    let end: i64 = token.strip_prefix(PREFIX).unwrap().parse().unwrap();
    end - world.azure.now().as_second()
}

/// The token of a kubeconfig is renewed before it expires, as often as needed, and after a restart: what counts is how
/// long it is still valid, not who wrote it and when.
pub async fn are_renewed(world: &mut World, secret: &str) {
    const LOOK: Duration = Duration::from_secs(20);
    let version = |world: &World| world.get("Secret", secret).unwrap()["metadata"]["resourceVersion"].clone();
    let (mut renewals, mut writes) = (0, 0);
    let (mut before, mut written) = (left(world, secret), version(world));
    for _ in 0..4 * 3600 / LOOK.as_secs() {
        tokio::time::sleep(LOOK).await;
        let (now, seen) = (left(world, secret), version(world));
        assert!(now > 120, "the token is valid for {now} s");
        renewals += usize::from(now > before);
        writes += usize::from(seen != written);
        (before, written) = (now, seen);
    }
    assert!((4..=5).contains(&renewals), "{renewals}");
    assert_eq!(writes, renewals, "the Secret is only written with another token");

    // It expires while no manager runs.
    world.kill().await;
    tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
    assert!(left(world, secret) < 0);
    let expired = world.get("Secret", secret).unwrap()["data"].clone();
    world.start();
    let took = world.until("a new token", |world| left(world, secret) > 3000).await;
    assert!(took < Duration::from_secs(60), "{took:?}");

    // A backup is restored.
    world.merge("Secret", secret, serde_json::json!({ "data": expired }));
    assert!(left(world, secret) < 0);
    let took = world.until("the token again", |world| left(world, secret) > 120).await;
    assert!(took < Duration::from_secs(720), "{took:?}");
}
