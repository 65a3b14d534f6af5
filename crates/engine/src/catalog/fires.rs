//! Whether a table has triggers for what a statement does: a look at one word each.

use crate::catalog::Table;
use crate::catalog::trigger::TriggerEvent;

impl Table {
    /// Whether an enabled trigger is for this.
    #[inline]
    #[must_use]
    pub fn fires(&self, event: TriggerEvent) -> bool {
        self.firing.on(event)
    }

    /// Whether an enabled trigger is called for each row of this.
    #[inline]
    #[must_use]
    pub fn fires_for_rows(&self, event: TriggerEvent) -> bool {
        self.firing.on_rows(event)
    }

    /// Whether an enabled trigger is called before each row of this, and may change the row.
    #[inline]
    #[must_use]
    pub fn fires_before_rows(&self, event: TriggerEvent) -> bool {
        self.firing.before_rows(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::TableDef;
    use crate::catalog::trigger::{Firing, TriggerDef};

    #[test]
    fn a_table_knows_what_its_enabled_triggers_are_for() {
        let text = r#"{"oid":1,"storage":1,"schema":"public","name":"t","columns":[],"indexes":[],
            "checks":[],"partition_key":[],"evictable":true,"options":{}}"#;
        let mut def: TableDef = serde_json::from_str(text).unwrap();
        assert!(def.triggers.is_empty());
        let mut trigger = TriggerDef {
            oid: 2,
            name: "a".into(),
            function: 3,
            before: true,
            row: true,
            events: vec![TriggerEvent::Insert, TriggerEvent::Update],
            columns: Vec::new(),
            condition: None,
            arguments: Vec::new(),
            disabled: false,
        };
        def.triggers.push(trigger.clone());
        trigger.before = false;
        trigger.row = false;
        trigger.events = vec![TriggerEvent::Delete];
        def.triggers.push(trigger);
        let firing = Firing::of(&def.triggers);
        assert!(firing.on(TriggerEvent::Insert) && firing.before_rows(TriggerEvent::Update));
        assert!(firing.on(TriggerEvent::Delete) && !firing.on_rows(TriggerEvent::Delete));
        assert!(!firing.on(TriggerEvent::Truncate));
        def.triggers[0].disabled = true;
        assert!(!Firing::of(&def.triggers).on(TriggerEvent::Insert));
        // It is kept with the table.
        let kept: TableDef = serde_json::from_str(&serde_json::to_string(&def).unwrap()).unwrap();
        assert_eq!(kept, def);
    }
}
