//! Assignments of elements of arrays, which grow as in an UPDATE.

use thermocline_query::tree::{Expr, ExprKind, Part, Store};
use thermocline_query::types::domain::base;
use thermocline_query::types::{element_of, format_type, ids};

use super::Machine;
use super::frame::{Held, Typed};
use crate::error::{Result, SqlError};
use crate::plpgsql::tree::{Expression, Target};
use crate::session::prepared::PlanSettings;

impl Machine<'_> {
    /// `target[…] := value`
    pub(super) async fn assign_element(
        &mut self,
        target: &Target,
        subscripts: &[Expression],
        value: &Expression,
    ) -> Result<()> {
        let array = self.array_of(target)?;
        let oid = base(array.oid);
        let Some(element) = element_of(oid) else {
            let shown = format_type(array.oid, -1);
            return Err(match oid {
                ids::JSONB => SqlError::unsupported(
                    "the assignment of a part of a jsonb is not supported",
                    "Use jsonb_set.",
                ),
                _ => SqlError::new(
                    "42804",
                    format!(
                        "cannot subscript type {shown} because it does not support subscripting"
                    ),
                ),
            });
        };
        let modifier = array.modifier;
        let mut parameters = vec![array.value];
        let mut bounds = Vec::with_capacity(subscripts.len());
        for subscript in subscripts {
            let at = self.value(subscript).await?;
            let at = self.cast(at, (ids::INT4, -1))?;
            bounds.push((None, Some(parameter(parameters.len(), ids::INT4))));
            parameters.push(at);
        }
        let value = self.value(value).await?;
        let value = self.cast(value, (element, modifier))?;
        let store = Store {
            container: parameter(0, oid),
            part: Part::Elements(bounds, false),
            value: parameter(parameters.len(), element),
        };
        parameters.push(value);
        let store = Expr::new(ExprKind::Store(Box::new(store)), oid, -1);
        let context = self.context();
        let settings = context.settings(|settings| PlanSettings::of(settings));
        let value = self.evaluate(&store, &parameters, &settings)?;
        let typed = Typed {
            value,
            oid,
            modifier,
        };
        self.assign(target, typed).await
    }

    /// What a target holds, and its type.
    fn array_of(&self, target: &Target) -> Result<Typed> {
        let held = &self.frame.held[target.slot];
        let name = &self.compiled.body.slots[target.slot].name;
        match (held, &target.field) {
            (Held::Row(row), Some(field)) => {
                let (at, column) = row.column(field).ok_or_else(|| row.without(name, field))?;
                Ok(Typed {
                    value: row.value(at),
                    oid: column.oid,
                    modifier: column.modifier,
                })
            }
            (held, None) => {
                let (oid, modifier) = held.type_of();
                Ok(Typed {
                    value: held.datum(),
                    oid,
                    modifier,
                })
            }
            (_, Some(field)) => {
                let message = format!("variable \"{name}\" is no row and has no field \"{field}\"");
                Err(SqlError::new("42804", message))
            }
        }
    }
}

fn parameter(at: usize, oid: u32) -> Expr {
    Expr::new(ExprKind::Parameter(at), oid, -1)
}
