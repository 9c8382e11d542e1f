pub(crate) mod event;
