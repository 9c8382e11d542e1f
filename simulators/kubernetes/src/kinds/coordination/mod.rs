pub(crate) mod lease;
