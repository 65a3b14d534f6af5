//! SECURITY DEFINER and SET of a function: the role and the settings that hold while it runs.

use std::sync::Arc;

use thermocline_engine::Catalog;
use thermocline_engine::authority::Object;
use thermocline_query::analyze::SqlFunction;

use crate::error::Result;
use crate::session::SessionContext;

/// What a function runs with.
pub(super) struct Within {
    /// Its owner, and whether that is a superuser.
    role: Option<(String, bool)>,
    settings: Arc<[(String, Vec<String>)]>,
}

/// While it is there, they hold.
pub(super) struct Entered {
    context: Arc<SessionContext>,
    before: Vec<(String, Option<String>)>,
}

impl Within {
    /// Of a function; none where it has nothing of its own.
    pub(super) fn of(function: &SqlFunction, catalog: &Catalog) -> Option<Self> {
        let role = function.definer.then(|| {
            let owner = catalog.authority.owner(&Object::Function(function.oid));
            let owner = catalog.authority.roles.get(&owner)?;
            Some((owner.name.clone(), owner.superuser))
        });
        let role = role.flatten();
        (role.is_some() || !function.settings.is_empty()).then(|| Self {
            role,
            settings: Arc::clone(&function.settings),
        })
    }

    /// Lets them hold.
    pub(super) fn enter(&self, context: &Arc<SessionContext>) -> Result<Entered> {
        let names = self.settings.iter().map(|(name, _)| name.as_str());
        let of_role = ["role", "is_superuser"].into_iter();
        let of_role = of_role.filter(|_| self.role.is_some());
        let names: Vec<&str> = names.chain(of_role).collect();
        let entered = Entered {
            before: context.settings(|settings| settings.held(&names)),
            context: Arc::clone(context),
        };
        if let Some((owner, superuser)) = &self.role {
            context.settings(|settings| settings.assume("role", Some(owner), *superuser, true));
        }
        for (name, values) in &*self.settings {
            context.set(name, Some(values), true)?;
        }
        Ok(entered)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = std::mem::take(&mut self.before);
        self.context.settings(|settings| settings.put_back(before));
    }
}
