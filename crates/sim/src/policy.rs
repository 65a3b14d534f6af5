//! The policies of a round: the server's, and what tables say for themselves, when they are made
//! and later, while statements run. Whatever they are, rows are the same: the model knows nothing of them.
//!
//! Tables whose rows do not leave memory are left out: in the little memory of a round statements
//! would be refused for them. The engine's `tests/policies.rs` has those.

use std::collections::BTreeMap;

use thermocline_engine::{
    ColdAccess, Compaction, Compression, Identification, Merge, MergeUnit, Policy, ReadUnit,
    Retrieval, Share, Timing,
};

use crate::chance::Chance;

fn identification(chance: &mut Chance) -> Identification {
    let all = Identification::NAMES.map(|(_, identification)| identification);
    let finding = all.iter().filter(|&&one| one != Identification::Off);
    chance.pick(&finding.copied().collect::<Vec<_>>())
}

fn merge(chance: &mut Chance) -> Merge {
    let top = [50_000, 500_000].map(|share| Share::of_millionths(share).map(Merge::Top));
    let [one, other] = top.map(|merge| merge.unwrap_or(Merge::Always));
    chance.pick(&[Merge::Warm, Merge::Always, Merge::UpdateOnly, one, other])
}

/// What a server is set to.
pub fn of_server(chance: &mut Chance) -> Policy {
    Policy {
        identification: identification(chance),
        alru_sample: chance.pick(&[Share::WHOLE, Policy::default().alru_sample]),
        offline_sample: chance.pick(&[Share::WHOLE, Policy::default().offline_sample]),
        timing: Timing::Threshold,
        retrieval: chance.pick(&[Retrieval::Restart, Retrieval::Restart, Retrieval::Sync]),
        read_unit: chance.pick(&[ReadUnit::Sectors, ReadUnit::Sectors, ReadUnit::Block]),
        merge: merge(chance),
        merge_unit: chance.pick(&[MergeUnit::Tuple, MergeUnit::Tuple, MergeUnit::Block]),
        block_bytes: chance.pick(&[4 << 10, 8 << 10, 16 << 10, 64 << 10]),
        compression: chance.pick(&[Compression::None, Compression::None, Compression::Lz4]),
        compaction: chance.pick(&[
            Compaction::Background,
            Compaction::Background,
            Compaction::Lazy,
        ]),
        fill_factor: chance.pick(&[Share::WHOLE, Policy::default().fill_factor]),
        compaction_percent: chance.pick(&[30, 60, 90]),
        // The simulated device can be looked at as memory, though it is not said to be.
        access: chance.pick(&[ColdAccess::Block, ColdAccess::Block, ColdAccess::Byte]),
    }
}

/// What a table says: nothing, or some of it.
pub fn of_table(chance: &mut Chance) -> BTreeMap<String, String> {
    let mut says = BTreeMap::new();
    if chance.percent(40) {
        return says;
    }
    let policy = of_server(chance);
    let size = chance.pick(&[1 << 10, 4 << 10, 16 << 10, 256 << 10]);
    let all = [
        ("identification", policy.identification.to_string()),
        ("alru_sample", policy.alru_sample.to_string()),
        ("offline_sample", policy.offline_sample.to_string()),
        ("retrieval", policy.retrieval.to_string()),
        ("read_unit", policy.read_unit.to_string()),
        ("merge", policy.merge.to_string()),
        ("merge_unit", policy.merge_unit.to_string()),
        ("block_size", size.to_string()),
        ("compression", policy.compression.to_string()),
        ("compaction", policy.compaction.to_string()),
        ("fill_factor", policy.fill_factor.to_string()),
        ("policy", chance.pick(&["generic", "paper"]).to_owned()),
        // A table may say otherwise than the server only so: a word of its own needs memory.
        ("access", ColdAccess::Block.to_string()),
    ];
    for (name, value) in all {
        if chance.percent(50) {
            says.insert(name.to_owned(), value);
        }
    }
    says
}
