//! azure.json: every key, its default, its validation.
