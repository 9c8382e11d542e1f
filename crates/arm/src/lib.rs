//! The client of Azure Resource Manager: clouds, credentials, budgets, long-running operations.
