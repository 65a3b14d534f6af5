//! What EXPLAIN ANALYZE shows of a plan that has run: each operator with the rows that it gave
//! and the processor time that it took, as far as it counts them.

use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, displayable};

/// The operators of a plan, one a line, indented by two.
pub(super) fn lines(plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
    let mut lines = Vec::new();
    operator(plan, 0, &mut lines);
    lines
}

fn operator(plan: &Arc<dyn ExecutionPlan>, depth: usize, lines: &mut Vec<String>) {
    let shown = displayable(plan.as_ref()).one_line().to_string();
    let mut line = format!("{:width$}{}", "", shown.trim_end(), width = 2 * depth);
    let counted = plan.metrics().map(|metrics| metrics.aggregate_by_name());
    if let Some(rows) = counted.as_ref().and_then(|metrics| metrics.output_rows()) {
        line += &format!("  (rows={rows}");
        if let Some(time) = counted.and_then(|metrics| metrics.elapsed_compute())
            && time > 0
        {
            let milliseconds = time as f64 / 1_000_000.0;
            line += &format!(" time={milliseconds:.3} ms");
        }
        line.push(')');
    }
    lines.push(line);
    for child in plan.children() {
        operator(child, depth + 1, lines);
    }
}
