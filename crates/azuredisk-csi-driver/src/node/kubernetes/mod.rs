//! What a node's driver asks of Kubernetes, and changes there.

mod agent_taint;
mod call;
mod node_object;
mod pre_stop;

pub use agent_taint::{TaintOptions, remove_agent_taint};
pub use node_object::NodeObject;
pub use pre_stop::{PreStopError, wait_before_stop};
