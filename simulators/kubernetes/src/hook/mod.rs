//! Dynamic admission: hooks that see a request before it takes effect, and may change or refuse it. A hook is a
//! function in this process ([`crate::Kubernetes::admission_hook`]) or a webhook that a MutatingWebhookConfiguration or
//! a ValidatingWebhookConfiguration registers; both are matched and called in the same way (Kubernetes: "Dynamic
//! Admission Control").

mod admission;
mod call;
mod condition;
mod function;
mod hooks;
mod in_process;
mod matching;
mod registration;
mod rule;

pub(crate) use admission::Admission;
pub use function::{AdmissionRequest, Decision};
pub(crate) use hooks::AllHooks;
pub use in_process::AdmissionHook;
