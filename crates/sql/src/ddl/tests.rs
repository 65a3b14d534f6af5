//! What DDL statements make of the catalog.
