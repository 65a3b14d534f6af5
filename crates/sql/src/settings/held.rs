//! Settings that hold for a while: those of a function, while it runs.

use super::{Settings, find, put};

impl Settings {
    /// What these settings are now, for [`Self::put_back`].
    pub(crate) fn held(&self, names: &[&str]) -> Vec<(String, Option<String>)> {
        let held = |name: &&str| ((*name).to_owned(), self.current.get(*name).cloned());
        names.iter().map(held).collect()
    }

    /// Puts settings back to what they were.
    pub(crate) fn put_back(&mut self, held: Vec<(String, Option<String>)>) {
        for (name, value) in held {
            put(&mut self.current, &name, value.as_ref());
            if let Some(definition) = find(&name).filter(|definition| definition.reported) {
                self.note_change(definition.name);
            }
        }
        self.refresh();
    }
}
