//! Views of what is ours: where memory goes, how many tuples of a table are
//! cold, what the device does, which policy is in force. They are relations of
//! `pg_catalog`, so that they are found without a schema.

mod about;
mod column_use;
mod columns;
#[cfg(test)]
mod reference;
mod tablespaces;

pub(crate) use about::comments;
pub(crate) use columns::columns;

use std::time::Duration;

use column_use::column_use;
use tablespaces::tablespaces;
use thermocline_engine::{Database, PolicyReport, Share};

use crate::analysis::Activity;
use crate::pg_catalog::{Datum, Relation, SystemSession};

/// The views: schema, name, number, kind, columns with their types' numbers.
pub(crate) const DEFINITIONS: &str = "\
pg_catalog\tthermocline_memory\t14901\tv\tname 25,bytes 20
pg_catalog\tthermocline_tables\t14902\tv\tschemaname 19,relname 19,relid 26,tuples_hot 20,tuples_cold 20,hot_bytes 20,metadata_bytes 20,blocks 20,block_bytes 20,holes 20
pg_catalog\tthermocline_devices\t14903\tv\tdevice 25,kind 25,emulated 16,read_latency_us 701,read_iops 701,write_mb_s 701,sync_us 701,reads 20,read_bytes 20,writes 20,written_bytes 20,syncs 20,errors 20,reads_in_flight 20,read_latency_us_p50 701,read_latency_us_p99 701,sync_latency_us_p50 701,sync_latency_us_p99 701,free_bytes 20,block_bytes 20,log_end 20,log_durable 20,outstanding 20,oldest_outstanding_ms 701,longest_ms 701
pg_catalog\tthermocline_policy\t14904\tv\tname 25,value 25
pg_catalog\tthermocline_counters\t14905\tv\tname 25,value 20
pg_catalog\tthermocline_sessions\t14907\tv\tpid 23,usename 19,application_name 25,state 25,bytes 20,session 20,message 20,statement 20,plan 20,portal 20,result 20,parameters 20,changes 20,reads 20,value 20
pg_catalog\tthermocline_policies\t14908\tv\tschemaname 19,relname 19,relid 26,base 25,said 25,identification 25,alru_sample 701,offline_sample 701,timing 25,retrieval 25,read_unit 25,access 25,merge 25,merge_unit 25,block_bytes 20,compression 25,compaction 25,fill_factor 701,rows_identified 20,rows_evicted 20,rows_evicted_clean 20,rows_fetched 20,rows_merged 20,rows_not_merged 20,rows_came_along 20,restarts 20,sync_reads 20,byte_reads 20,bytes_written 20,bytes_read 20
pg_catalog\tthermocline_columns\t14909\tv\tschemaname 19,relname 19,relid 26,attname 19,rows_main 20,rows_delta 20,groups 20,nulls 20,device_bytes 20,memory_bytes 20,encodings 25,groups_scanned 20,groups_skipped 20,state 25,unload_priority 20
pg_catalog\tthermocline_column_use\t14911\tv\tschemaname 19,relname 19,relid 26,attname 19,indexed 16,projections 20,conditions 20,chunks 20,chunk_values 20,chunk_bytes 20,single_values 20,device_reads 20,device_bytes 20
pg_catalog\tthermocline_tablespaces\t14910\tv\tspcname 19,oid 26,directory 25,state 25,device 25,emulated 16,read_us 701,reads_per_second 701,write_mb_s 701,sync_us 701,capacity 20,tables 20,blocks 20,block_bytes 20,blocks_leaving 20,blocks_coming 20,file_bytes 20,free_bytes 20
pg_catalog\tthermocline_recovery\t14906\tv\tpart 25,unit 25,done 20,total 20,under_way 16,milliseconds 20
pg_catalog\tpg_stat_statements\t14921\tv\tuserid 26,dbid 26,toplevel 16,queryid 20,query 25,plans 20,total_plan_time 701,min_plan_time 701,max_plan_time 701,mean_plan_time 701,stddev_plan_time 701,calls 20,total_exec_time 701,min_exec_time 701,max_exec_time 701,mean_exec_time 701,stddev_exec_time 701,rows 20,shared_blks_hit 20,shared_blks_read 20,shared_blks_dirtied 20,shared_blks_written 20,local_blks_hit 20,local_blks_read 20,local_blks_dirtied 20,local_blks_written 20,temp_blks_read 20,temp_blks_written 20,blk_read_time 701,blk_write_time 701,temp_blk_read_time 701,temp_blk_write_time 701,wal_records 20,wal_fpi 20,wal_bytes 1700,jit_functions 20,jit_generation_time 701,jit_inlining_count 20,jit_inlining_time 701,jit_optimization_count 20,jit_optimization_time 701,jit_emission_count 20,jit_emission_time 701
pg_catalog\tpg_stat_statements_info\t14922\tv\tdealloc 20,stats_reset 1184
";

/// The number of a view and the names of its columns.
fn definition(view: &str) -> Option<(u32, Vec<&'static str>)> {
    let mut lines = DEFINITIONS.lines().map(|line| line.split('\t'));
    lines.find_map(|mut fields| {
        let (_, name, oid) = (fields.next()?, fields.next()?, fields.next()?);
        let columns = fields.next_back()?.split(',');
        let columns = columns.filter_map(|column| column.split(' ').next());
        (name == view).then_some((oid.parse().ok()?, columns.collect()))
    })
}

fn int(value: u64) -> Datum {
    Datum::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The rows of a view.
pub(crate) fn rows(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    match relation.name {
        "thermocline_memory" => memory(&session.db),
        "thermocline_tables" => tables(session),
        "thermocline_devices" => devices(&session.db),
        "thermocline_policy" => policy(&session.db),
        "thermocline_policies" => policies(&session.db),
        "thermocline_tablespaces" => tablespaces(&session.db),
        "thermocline_column_use" => column_use(&session.db),
        "thermocline_counters" => counters(&session.db),
        "thermocline_recovery" => recovery(&session.db),
        "thermocline_sessions" => sessions(session),
        _ => Vec::new(),
    }
}

fn memory(db: &Database) -> Vec<Vec<Datum>> {
    let report = db.memory_report();
    [
        ("limit", report.limit),
        ("resident", report.resident),
        ("resident_max", report.resident_max),
        ("arena", report.arena),
        ("huge_pages", report.huge_pages),
        ("tuples", report.tuples),
        ("directories", report.directories),
        ("indexes", report.indexes),
        ("per_cold_tuple", report.per_cold_tuple),
        ("floor", report.floor),
        ("metadata", report.metadata),
        ("metadata_max", report.metadata_max),
        ("versions", report.versions),
        ("versions_max", report.versions_max),
        ("log_buffers", report.log_buffers),
        ("read_buffers", report.read_buffers),
        ("fetched", report.fetched),
        ("column_chunks", report.column_chunks),
        ("warm_buffer", report.warm_buffer),
        ("warm_buffer_max", report.warm_buffer_max),
        ("devices", report.devices),
        ("analytical", report.analytical),
        ("clients", report.clients.granted),
        ("clients_max", report.clients.granted_max),
        ("clients_share", report.clients.share),
        ("changes", report.clients.changes),
    ]
    .into_iter()
    .map(|(name, bytes)| vec![Datum::text(name), int(bytes)])
    .collect()
}

/// What each session holds: in all, then by kind.
fn sessions(session: &SystemSession) -> Vec<Vec<Datum>> {
    let row = |activity: &Activity| {
        let mut row = vec![
            Datum::Int(i64::from(activity.process_id)),
            Datum::text(&activity.user),
            Datum::text(&activity.application),
            Datum::text(&activity.state),
            int(activity.holds.iter().sum()),
        ];
        row.extend(activity.holds.iter().map(|bytes| int(*bytes)));
        row
    };
    session.facts.activity().iter().map(row).collect()
}

fn tables(session: &SystemSession) -> Vec<Vec<Datum>> {
    session
        .table_reports()
        .iter()
        .map(|report| {
            vec![
                Datum::text(&report.schema),
                Datum::text(&report.name),
                Datum::oid(report.oid),
                int(report.hot),
                int(report.cold),
                int(report.hot_bytes),
                int(report.metadata_bytes),
                int(report.blocks),
                int(report.block_bytes),
                int(report.holes),
            ]
        })
        .collect()
}

fn devices(db: &Database) -> Vec<Vec<Datum>> {
    db.device_reports()
        .into_iter()
        .map(|report| {
            let (profile, counters) = (report.profile, report.counters);
            vec![
                Datum::text(&report.description),
                Datum::text(format!("{:?}", profile.kind).to_lowercase()),
                Datum::Bool(profile.emulated),
                Datum::Float(profile.read_latency_us),
                Datum::Float(profile.read_iops),
                Datum::Float(profile.sequential_write_mb_s),
                Datum::Float(profile.sync_us),
                int(counters.reads),
                int(counters.read_bytes),
                int(counters.writes),
                int(counters.written_bytes),
                int(counters.syncs),
                int(counters.errors),
                int(counters.in_flight),
                Datum::Float(counters.read_latency_us_p50),
                Datum::Float(counters.read_latency_us_p99),
                Datum::Float(counters.sync_latency_us_p50),
                Datum::Float(counters.sync_latency_us_p99),
                int(report.free_bytes),
                int(report.block_bytes),
                int(report.log_end),
                int(report.log_durable),
                int(counters.outstanding.operations),
                Datum::Float(milliseconds(counters.outstanding.oldest)),
                Datum::Float(milliseconds(counters.outstanding.longest)),
            ]
        })
        .collect()
}

fn policy(db: &Database) -> Vec<Vec<Datum>> {
    let policy = db.policy();
    [
        ("identification", policy.identification.to_string()),
        ("retrieval", policy.retrieval.to_string()),
        ("merge", policy.merge.to_string()),
        ("block_bytes", policy.block_bytes.to_string()),
        ("compaction_percent", policy.compaction_percent.to_string()),
    ]
    .into_iter()
    .map(|(name, value)| vec![Datum::text(name), Datum::text(value)])
    .collect()
}

/// By table: the policy in force, where each choice comes from, and what was done by it.
fn policies(db: &Database) -> Vec<Vec<Datum>> {
    let share = |share: Share| Datum::Float(f64::from(share.millionths()) / 1e6);
    let row = |report: PolicyReport| {
        let policy = &report.policy;
        let said: Vec<&str> = report.says.said().collect();
        let mut row = vec![
            Datum::text(&report.schema),
            Datum::text(&report.name),
            Datum::oid(report.oid),
            Datum::text(report.says.base()),
            Datum::text(said.join(", ")),
            Datum::text(policy.identification.to_string()),
            share(policy.alru_sample),
            share(policy.offline_sample),
            Datum::text(policy.timing.to_string()),
            Datum::text(policy.retrieval.to_string()),
            Datum::text(policy.read_unit.to_string()),
            Datum::text(policy.access.to_string()),
            Datum::text(policy.merge.to_string()),
            Datum::text(policy.merge_unit.to_string()),
            int(policy.block_bytes.into()),
            Datum::text(policy.compression.to_string()),
            Datum::text(policy.compaction.to_string()),
            share(policy.fill_factor),
        ];
        row.extend(report.counts.each().map(|(_, count)| int(count)));
        row
    };
    db.policy_reports().into_iter().map(row).collect()
}

fn counters(db: &Database) -> Vec<Vec<Datum>> {
    let counters = db.counters();
    let checkpoint = db.checkpoint_report();
    let recovery = db.recovery_report();
    [
        ("misses", counters.misses),
        ("merges", counters.merges),
        ("overwrites", counters.overwrites),
        ("warmed", counters.warmed),
        ("evictions", counters.evictions),
        ("clean_evictions", counters.clean_evictions),
        ("blocks_evicted", counters.blocks_evicted),
        ("blocks_checkpointed", counters.blocks_checkpointed),
        ("blocks_freed", counters.blocks_freed),
        ("tuples_compacted", counters.tuples_compacted),
        ("block_bytes_written", counters.block_bytes_written),
        ("image_bytes_written", counters.image_bytes_written),
        ("checkpoints", counters.checkpoints),
        ("checkpoint_last_ms", checkpoint.last_milliseconds),
        ("checkpoint_last_image_bytes", checkpoint.last_image_bytes),
        ("checkpoint_longest_hold_us", checkpoint.longest_hold_us),
        ("recovery_ms", recovery.milliseconds),
        ("recovery_whole_ms", recovery.whole_milliseconds),
        ("recovery_rows", recovery.rows),
        ("recovery_log_records", recovery.records),
        ("memory_waits", counters.memory_waits),
        ("log_bytes", counters.log_bytes),
        ("refreshes", counters.refreshes),
        ("reads_joined", counters.reads_joined),
        ("snapshots_ended", counters.snapshots_ended),
        ("column_pages_read", db.column_pages_read()),
    ]
    .into_iter()
    .map(|(name, value)| vec![Datum::text(name), int(value)])
    .collect()
}

/// What the last start did, and what of it goes on.
fn recovery(db: &Database) -> Vec<Vec<Datum>> {
    let (report, warm_up) = (db.recovery_report(), db.warm_up_report());
    let read = |name, bytes, milliseconds| {
        let bytes = int(bytes);
        vec![
            Datum::text(name),
            Datum::text("bytes"),
            bytes.clone(),
            bytes,
            Datum::Bool(false),
            int(milliseconds),
        ]
    };
    vec![
        vec![
            Datum::text("partitions"),
            Datum::text("partitions"),
            int(u64::from(report.partitions_there)),
            int(u64::from(db.partitions())),
            Datum::Bool(report.partitions_there < db.partitions()),
            int(report.whole_milliseconds),
        ],
        read("images", report.image_bytes, report.image_milliseconds),
        read("log", report.log_bytes, report.log_milliseconds),
        vec![
            Datum::text("settling"),
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Bool(false),
            int(report.settling_milliseconds),
        ],
        vec![
            Datum::text("warm-up"),
            Datum::text("sweeps"),
            int(warm_up.swept),
            int(warm_up.sweeps),
            Datum::Bool(warm_up.is_under_way),
            Datum::Null,
        ],
    ]
}

#[cfg(test)]
mod tests {
    use thermocline_engine::ChargeKind;

    use super::*;

    #[test]
    fn sessions_have_a_column_for_each_kind_of_charge() {
        let kinds = ChargeKind::ALL
            .iter()
            .map(|kind| format!("{} 20", kind.name()));
        let kinds: Vec<String> = kinds.collect();
        let line = DEFINITIONS.lines().find(|l| l.contains("_sessions\t"));
        let columns = line.unwrap().rsplit('\t').next().unwrap();
        assert!(
            columns.ends_with(&format!("bytes 20,{}", kinds.join(","))),
            "{columns}"
        );
    }
}
