//! Tablespaces come and go. What is on the device is made before the definition is committed, and
//! removed after the one that drops it is: so a crash leaves too much, which the next start
//! removes, and never too little.
//!
//! A tablespace is dropped when nothing lies in it: no table has it, the blocks that were there are
//! moved, and a checkpoint that no longer names them is durable.

use std::path::PathBuf;
use std::sync::Arc;

use thermocline_device::Mutation;
use thermocline_storage::block_store::HOME;

use crate::catalog::Catalog;
use crate::catalog::tablespace::{MEASURED, TablespaceDef, TablespaceOptions};
use crate::format::places::Place;
use crate::ground::aside::aside;
use crate::ground::error::{Error, Result, store_failed};
use crate::parts::Parts;

/// Checkpoints that are made for a tablespace to become empty: what is freed during one is given back by the next.
const CHECKPOINTS_MAX: usize = 3;

impl Parts {
    /// As [`Self::make_tablespace`], for a client: its device may be measured, which takes a second.
    ///
    /// # Errors
    /// Those of [`Self::make_tablespace`].
    pub async fn make_tablespace_aside(
        self: &Arc<Self>,
        def: TablespaceDef,
    ) -> Result<TablespaceDef> {
        let parts = self.clone();
        aside("tablespace", move || parts.make_tablespace(def)).await?
    }

    /// As [`Self::look_at_tablespace`], for a client.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub async fn look_at_tablespace_aside(
        self: &Arc<Self>,
        mut def: TablespaceDef,
    ) -> Result<TablespaceDef> {
        let parts = self.clone();
        let work = move || {
            parts.look_at_tablespace(&mut def);
            def
        };
        aside("tablespace", work).await
    }

    /// Makes the place of a tablespace that is about to be defined; its definition with its number.
    ///
    /// # Errors
    /// See [`Tablespaces::make`](crate::parts::tablespaces::Tablespaces::make); 22023 for an option.
    pub fn make_tablespace(&self, mut def: TablespaceDef) -> Result<TablespaceDef> {
        for (name, text) in &def.options {
            check_option(name, text)?;
        }
        self.make_place(&mut def)?;
        self.look_at_tablespace(&mut def);
        self.tablespaces().tell(&def);
        Ok(def)
    }

    /// Chooses its number, and makes its directory and its file.
    fn make_place(&self, def: &mut TablespaceDef) -> Result<()> {
        // Two that are made at once get two numbers.
        let _making = self.tablespaces().making.lock();
        let taken = self.blocks().volumes().numbers();
        let catalog = self.catalog();
        let places = self.tablespaces().places();
        // One that was dropped may have left its place, if that could not be written.
        let is_free = |number: &u16| {
            !taken.contains(number)
                && catalog
                    .tablespaces
                    .values()
                    .all(|def| def.number != *number)
                && places.values().all(|place| place.number != *number)
        };
        def.number = (HOME + 1..u16::MAX).find(is_free).ok_or_else(|| {
            Error::catalog("54000", "too many tablespaces; drop one that is not used")
        })?;
        let archive = self.settings().archive.as_ref();
        let ours = [self.device().path(), archive.and_then(|a| a.path())];
        let ours: Vec<PathBuf> = ours.into_iter().flatten().map(PathBuf::from).collect();
        let file = self.tablespaces().make(def, &ours)?;
        if let Err(error) = self.blocks().add_tablespace(&file) {
            self.settle_tablespace(def.oid);
            return Err(store_failed(error));
        }
        Ok(())
    }

    /// Has a tablespace know what its device is like, where nothing else says so. It takes about a second.
    /// A device that cannot be looked at is taken for what the server's is.
    pub fn look_at_tablespace(&self, def: &mut TablespaceDef) {
        def.options.remove(MEASURED);
        if !TablespaceOptions::of(&def.options).asks_the_device() {
            return;
        }
        match self.tablespaces().look_at_device(def.number) {
            Ok(Some(measured)) => {
                def.options.insert(MEASURED.into(), measured.to_string());
            }
            Ok(None) => {}
            Err(error) => self.report(&format!(
                "the device of tablespace \"{}\" was not measured: {error}",
                def.name
            )),
        }
    }

    /// What follows from the end of a command about a tablespace, whether it succeeded or not: the catalog says whether
    /// there is one. A commit may have been one though whoever waited for it was told of an error.
    pub fn settle_tablespace(&self, oid: u32) {
        let catalog = self.catalog();
        let settled = match (catalog.tablespaces.get(&oid), self.tablespaces().place(oid)) {
            (Some(def), _) => self.note_tablespace(def),
            (None, Some(place)) => self.forget_place(oid, &place),
            (None, None) => Ok(()),
        };
        if let Err(error) = settled {
            // The next start sees to it.
            self.report(&format!("a tablespace: {error}"));
        }
    }

    /// Sees to it that nothing lies in a tablespace that is about to be dropped.
    /// Its definition is locked, and no table has it.
    ///
    /// # Errors
    /// 55000 while blocks there are still being moved or read; those of a checkpoint.
    pub async fn vacate_tablespace(&self, def: &TablespaceDef) -> Result<()> {
        let blocks = self.blocks();
        for _ in 0..CHECKPOINTS_MAX {
            if blocks.is_vacant(def.number) || Mutation::TablespaceNotVacated.is_made() {
                return Ok(());
            }
            let mut empty = Vec::new();
            blocks.each_block(|block| {
                if block.tablespace == def.number && block.live_records == 0 {
                    empty.push(block.id);
                }
            });
            empty
                .into_iter()
                .for_each(|block| self.give_up_block(block));
            self.checkpoint().await?;
        }
        match blocks.is_vacant(def.number) {
            true => Ok(()),
            false => Err(Error::Refused {
                sqlstate: "55000",
                message: format!("tablespace \"{}\" is not empty", def.name),
                hint: "Rows that its tables had there are being moved, or a backup reads them; \
                       thermocline_tablespaces shows how many blocks are left. Try again then.",
            }),
        }
    }

    /// Removes what a tablespace that is no more had on its device. Where blocks lie in it all the same, because one
    /// was just being written when it was dropped, it stays until a start finds none.
    fn forget_place(&self, oid: u32, place: &Place) -> Result<()> {
        let retired = self.blocks().retire_tablespace(place.number);
        if !retired && !Mutation::TablespaceNotVacated.is_made() {
            return Ok(());
        }
        self.tablespaces().remove_files(place);
        self.tablespaces().book().remove(oid);
        self.tablespaces().note(oid, None)
    }

    /// Notes what a tablespace is called and what its options are, where they were others.
    fn note_tablespace(&self, def: &TablespaceDef) -> Result<()> {
        let place = self.tablespaces().place(def.oid);
        let Some(place) = place.filter(|p| p.name != def.name || p.options != def.options) else {
            return Ok(());
        };
        let noted = Place {
            name: def.name.clone(),
            options: def.options.clone(),
            ..place
        };
        self.tablespaces().note(def.oid, Some(noted))?;
        let options = TablespaceOptions::of(&def.options);
        self.blocks().set_capacity(def.number, options.capacity);
        Ok(())
    }

    /// Says what the tables of each tablespace begin with.
    pub(crate) fn tell_tablespaces(&self, catalog: &Catalog) {
        for def in catalog.tablespaces.values() {
            self.tablespaces().tell(def);
        }
    }

    /// Says what the tables of those begin with that a commit makes or changes; their object ids.
    pub(super) fn tell_changed_tablespaces(&self, old: &Catalog, new: &Catalog) -> Vec<u32> {
        let is_new = |def: &&Arc<TablespaceDef>| old.tablespaces.get(&def.oid) != Some(*def);
        let changed: Vec<_> = new.tablespaces.values().filter(is_new).collect();
        for def in &changed {
            self.tablespaces().tell(def);
            let options = TablespaceOptions::of(&def.options);
            self.blocks().set_capacity(def.number, options.capacity);
            self.tablespaces().tries_again(def.number);
        }
        changed.into_iter().map(|def| def.oid).collect()
    }

    /// At the end of the log: what has no place gets one in the database's own directory, as after a restore,
    /// and what no definition has is removed.
    ///
    /// # Errors
    /// The device's.
    pub(crate) fn settle_tablespaces(&self) -> Result<()> {
        let catalog = self.catalog();
        self.tell_tablespaces(&catalog);
        for def in catalog.tablespaces.values() {
            self.adopt_place(def, &catalog)?;
        }
        let places = self.tablespaces().places();
        for def in catalog.tablespaces.values() {
            match places.contains_key(&def.oid) {
                true => {
                    self.note_tablespace(def)?;
                    self.report_missing(def);
                }
                false => {
                    let home = TablespaceDef {
                        location: String::new(),
                        ..(**def).clone()
                    };
                    let file = self.tablespaces().make(&home, &[])?;
                    self.blocks().add_tablespace(&file).map_err(store_failed)?;
                }
            }
        }
        for (oid, place) in &places {
            if !catalog.tablespaces.contains_key(oid) {
                self.forget_place(*oid, place)?;
            }
        }
        Ok(())
    }

    /// Takes over the place that nothing but its number tells whose it is: what a restore found of a tablespace
    /// that only the log knows, or one whose commit was not known to be one.
    fn adopt_place(&self, def: &TablespaceDef, catalog: &Catalog) -> Result<()> {
        let places = self.tablespaces().places();
        let mut others = places.into_iter();
        let has_number = |(oid, place): &(u32, Place)| {
            place.number == def.number && !catalog.tablespaces.contains_key(oid)
        };
        match others.find(has_number) {
            Some((oid, place)) if self.tablespaces().place(def.oid).is_none() => {
                self.tablespaces().rename_place(oid, def.oid, place)
            }
            _ => Ok(()),
        }
    }

    fn report_missing(&self, def: &TablespaceDef) {
        if let Some(why) = self.tablespaces().not_emulated(def.number) {
            self.report(&format!(
                "tablespace \"{}\" is as fast as its disk, which is too slow to emulate another: {why}",
                def.name
            ));
        }
        if let Some(why) = self.blocks().statistics_of(def.number).missing {
            self.report(&format!(
                "tablespace \"{}\" is not there: {why}; rows that lie in it cannot be read until it is, and the server has been started again",
                def.name
            ));
        }
    }
}

/// Whether a tablespace may have an option.
///
/// # Errors
/// 22023 with what it may be.
pub fn check_option(name: &str, text: &str) -> Result<()> {
    match TablespaceOptions::check(name, text) {
        Some(Ok(())) => Ok(()),
        Some(Err(may_be)) => Err(Error::catalog(
            "22023",
            format!("invalid value for option \"{name}\": \"{text}\"; valid values: {may_be}"),
        )),
        None => Err(Error::catalog(
            "22023",
            format!("unrecognized parameter \"{name}\""),
        )),
    }
}
