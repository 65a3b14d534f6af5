//! Waiting for the partitions that a start brings one by one ([`crate::rows::arrivals`]).

use crate::ground::error::Result;
use crate::ground::scope::Scope;
use crate::parts::Parts;
use crate::transaction::RunOptions;

impl Parts {
    /// Waits until the partitions of a scope are there, but not beyond a cancel or the
    /// statement's deadline; an error if one of them cannot be read.
    #[inline]
    pub(crate) async fn there(&self, options: &RunOptions, scope: &Scope) -> Result<()> {
        match self.arrivals().are_complete() {
            true => Ok(()),
            false => self.wait_until_there(options, scope).await,
        }
    }

    async fn wait_until_there(&self, options: &RunOptions, scope: &Scope) -> Result<()> {
        self.arrivals().want(scope);
        loop {
            let changed = self.arrivals().changed.listen();
            if self.arrivals().have(scope)? {
                return Ok(());
            }
            self.or_interrupted(options, None, changed).await?;
        }
    }

    /// Waits until all partitions are there, as long as the statement may.
    ///
    /// # Errors
    /// Why one of them cannot be read; 57014.
    pub async fn all_there(&self, options: &RunOptions) -> Result<()> {
        self.there(options, &Scope::All).await
    }

    /// Waits until all partitions are there. They serve before that, each as soon as it is
    /// there; who wants figures of all, or nothing to go on beside, waits.
    ///
    /// # Errors
    /// Why one of them cannot be read; 57P01 when the database is closed meanwhile.
    pub fn wait_for_partitions(&self) -> Result<()> {
        if self.arrivals().are_complete() {
            return Ok(());
        }
        if self.arrivals().are_brought_by_hand() {
            while self.start().step() {}
        }
        self.arrivals().wait(&Scope::All)
    }

    /// How many partitions there are, and how many of them are there.
    pub(crate) fn partitions_there(&self) -> u16 {
        self.partitions() - self.arrivals().missing() as u16
    }
}
