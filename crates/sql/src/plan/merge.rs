//! The plan of a MERGE.

use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_values::types::DataType;

use super::{ReadQuery, ShortPlan};

/// MERGE: a query finds the rows and which action is for each.
#[derive(Clone, Debug)]
pub struct MergePlan {
    /// The table.
    pub table: Arc<Table>,
    /// It gives the key's columns, NULL where nothing matches, the number of the action, NULL
    /// where there is none, and the values that the actions need.
    pub query: ReadQuery,
    /// The key's columns are so many of the query's.
    pub key_columns: usize,
    /// The types in which the query's columns are wanted, and the table's columns.
    pub targets: Vec<(DataType, String)>,
    /// The actions; None: nothing is done. Their parameters behind the statement's own are what
    /// was found.
    pub actions: Vec<Option<ShortPlan>>,
    /// How a row is locked.
    pub lock: ShortPlan,
    /// The statement's own parameters.
    pub own_parameters: usize,
}

impl MergePlan {
    /// Whether an action is for rows of the table that are there.
    pub(crate) fn changes_row(&self, action: usize) -> bool {
        let plan = self.actions.get(action).and_then(Option::as_ref);
        matches!(
            plan,
            Some(ShortPlan::Update(_) | ShortPlan::Delete(_) | ShortPlan::Each(_))
        )
    }
}
