pub(crate) mod priority_class;
