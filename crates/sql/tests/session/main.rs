//! Sessions as clients see them: the order of messages, tags, errors, the
//! status of the transaction.

mod alter_table;
mod by_query;
mod column_tables;
mod comments;
mod copy;
mod current_of;
mod cursors;
mod ddl;
mod domains;
mod extended;
mod fixture;
mod found_types;
mod functions;
mod idle_plans;
mod inner;
mod locks;
mod numerics;
mod owned;
mod parts_of_columns;
mod privileges;
mod pull_up;
mod search_cycle;
mod sets;
mod settings;
mod simple;
mod sleeps;
mod slow_rows;
mod statements;
mod styles;
mod table_as;
mod temporary;
mod transactions;
mod types;
mod user_types;
mod views;
