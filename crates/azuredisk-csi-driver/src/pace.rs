//! How often Azure is asked again while it works on something without an operation to follow.

use std::time::Duration;

use tokio::time::sleep;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(5);

/// Pauses that grow by half each time, up to five seconds.
#[derive(Debug)]
pub(crate) struct Pace(Duration);

impl Default for Pace {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Pace {
    pub(crate) async fn pause(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 3 / 2).min(LONGEST);
    }
}
