//! Accounts and shares.
