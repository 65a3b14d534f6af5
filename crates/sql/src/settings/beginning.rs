//! What sessions of a role or of the database begin with (ALTER ROLE … SET, ALTER DATABASE … SET).

use super::Settings;
use crate::error::Result;

impl Settings {
    /// A setting that sessions of the role begin with (ALTER ROLE … SET): RESET comes back to it.
    /// Who gave it was allowed to.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn begin_with(&mut self, name: &str, value: &str) -> Result<()> {
        let superuser = std::mem::replace(&mut self.read.superuser, true);
        let begun = self.start_up(name, value);
        self.read.superuser = superuser;
        begun
    }

    /// The text of a setting's value, if it takes this one.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn accepted(name: &str, values: &[String], superuser: bool) -> Result<String> {
        let mut settings = Self::new("", &[]);
        settings.read.superuser = superuser;
        settings.set(name, Some(values), false)?;
        settings.show(name)
    }
}
