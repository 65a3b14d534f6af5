//! Views where the short path meets them: it reads none, and none takes changes.

use thermocline_engine::authority::Privileges;
use thermocline_engine::{Catalog, ViewDef};

use super::Refusal;
use crate::error::SqlError;

/// Why a view is not bound, by what its statement needs of it.
#[cold]
pub(super) fn of_view(catalog: &Catalog, view: &ViewDef, needs: Privileges) -> Refusal {
    let name = &view.name;
    let (action, doing, command) = match needs {
        Privileges::SELECT => return Refusal::declined("a view"),
        Privileges::INSERT => ("insert into", "inserting into", "INSERT"),
        Privileges::UPDATE => ("update", "updating", "UPDATE"),
        Privileges::DELETE => ("delete from", "deleting from", "DELETE"),
        _ => {
            let message = format!("locking rows of view \"{name}\" is not supported");
            return SqlError::unsupported(message)
                .with_hint("Lock the rows of the tables below it.")
                .into();
        }
    };
    // The view below that stands in the way, if not this one.
    let mut lowest = view;
    while lowest.obstacle.is_none()
        && let [read] = lowest.reads.as_slice()
        && let Some(below) = catalog.views.get(&read.oid)
    {
        lowest = below;
    }
    let error = match &lowest.obstacle {
        Some(obstacle) => {
            let message = format!("cannot {action} view \"{}\"", lowest.name);
            SqlError::new("55000", message)
                .with_detail(obstacle)
                .with_hint(format!(
                    "To enable {doing} the view, provide an INSTEAD OF {command} trigger or an \
                     unconditional ON {command} DO INSTEAD rule."
                ))
        }
        None => SqlError::unsupported(format!("{command} on view \"{name}\" is not supported"))
            .with_hint("Change the table below the view itself."),
    };
    error.into()
}
