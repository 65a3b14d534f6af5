//! What the body of a trigger's function knows beside its own variables.

use thermocline_query::types::ids;

use super::read::Reader;
use super::tree::Declared;
use crate::error::Result;

/// The variables of a trigger's function, which are its first, in this order.
const NAMES: [(&str, u32); 12] = [
    ("new", ids::RECORD),
    ("old", ids::RECORD),
    ("tg_name", ids::NAME),
    ("tg_when", ids::TEXT),
    ("tg_level", ids::TEXT),
    ("tg_op", ids::TEXT),
    ("tg_relid", ids::OID),
    ("tg_relname", ids::NAME),
    ("tg_table_name", ids::NAME),
    ("tg_table_schema", ids::NAME),
    ("tg_nargs", ids::INT4),
    ("tg_argv", TEXTS),
];

/// The type of an array of texts.
pub(crate) const TEXTS: u32 = 1009;

impl Reader<'_> {
    /// Makes the variables of a trigger's function.
    pub(super) fn trigger_variables(&mut self) -> Result<()> {
        for (name, oid) in &NAMES {
            let slot = self.slot(name, Declared::Known(*oid))?;
            self.know(name, Some(slot));
        }
        Ok(())
    }
}
