//! What tables begin with that do not say their policy: by the tablespace that their evicted rows go
//! to, and the server's where it says nothing.

use hashbrown::HashMap;
use parking_lot::RwLock;

use super::table_policy::Policies;

/// The sets of choices by tablespace.
#[derive(Debug, Default)]
pub struct PolicyBook {
    home: Policies,
    /// By the tablespace's object id.
    others: RwLock<HashMap<u32, Policies>>,
}

impl PolicyBook {
    /// A book that says the same of all tablespaces.
    #[must_use]
    pub fn of_server(home: Policies) -> Self {
        PolicyBook {
            home,
            others: RwLock::default(),
        }
    }

    /// What the server is set to.
    #[must_use]
    pub fn home(&self) -> Policies {
        self.home
    }

    /// Of a tablespace; 0 is the database's own directory.
    #[must_use]
    pub fn of(&self, tablespace: u32) -> Policies {
        match tablespace {
            0 => self.home,
            oid => self.others.read().get(&oid).copied().unwrap_or(self.home),
        }
    }

    /// Says what a tablespace has.
    pub fn put(&self, tablespace: u32, policies: Policies) {
        self.others.write().insert(tablespace, policies);
    }

    /// Forgets a tablespace.
    pub fn remove(&self, tablespace: u32) {
        self.others.write().remove(&tablespace);
    }
}
