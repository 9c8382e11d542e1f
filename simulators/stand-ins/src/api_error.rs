//! Errors of the Kubernetes API.

/// Whether the API answered with this status code.
pub(crate) fn has_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}
