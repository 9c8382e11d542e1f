//! The task that performs chores when they are due.

use crate::server::handle::Kubernetes;

impl Kubernetes {
    /// Starts the task that performs planned chores. Outside of a runtime there is none, and they are not performed.
    pub(crate) fn keep_house(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let changed = || self.shared.chores_changed.notify_one();
        if !self.shared.state.lock().needs_housekeeper(changed) {
            return;
        }
        let this = self.clone();
        runtime.spawn(async move {
            loop {
                let next = this.shared.state.lock().do_chores(&this.direct());
                let Some(next) = next else { return };
                tokio::select! {
                    () = tokio::time::sleep_until(next) => {}
                    () = this.shared.chores_changed.notified() => {}
                }
            }
        });
    }
}
