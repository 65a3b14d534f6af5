//! Plans of statements that are nested deeply. Operators run wherever the runtime has them run,
//! so each of them makes room on the stack itself, each time it is asked for its next batch.
//!
//! Where an operator evaluates an expression in a task of its own nobody makes room: there an
//! expression may only be as deep as any thread's stack allows, and the rest is refused.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::Stream;

use crate::parse::depth::too_deep;
use crate::stack;

/// The depth that an expression may have where it is evaluated in a task of its own.
const TASK_DEPTH_MAX: u32 = 100;

/// Makes room where the plan of the running statement runs, if it is deep.
#[derive(Debug)]
pub(super) struct MakeRoom;

impl PhysicalOptimizerRule for MakeRoom {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let depth = stack::depth();
        if depth == 0 {
            return Ok(plan);
        }
        let wrapped = plan.transform_up(|node| {
            let tasks = ["SortExec", "RepartitionExec", "SortPreservingMergeExec"];
            if tasks.contains(&node.name()) {
                refuse_deep(&node)?;
            }
            Ok(Transformed::yes(
                Arc::new(RoomyExec { input: node, depth }) as _
            ))
        })?;
        Ok(wrapped.data)
    }

    fn name(&self) -> &'static str {
        "make_room"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn refuse_deep(node: &Arc<dyn ExecutionPlan>) -> Result<()> {
    node.apply_expressions(&mut |expr| match is_deeper(expr, TASK_DEPTH_MAX) {
        true => Err(DataFusionError::External(Box::new(too_deep()))),
        false => Ok(TreeNodeRecursion::Continue),
    })?;
    Ok(())
}

fn is_deeper(expr: &Arc<dyn PhysicalExpr>, depth: u32) -> bool {
    depth == 0
        || expr
            .children()
            .into_iter()
            .any(|child| is_deeper(child, depth - 1))
}

/// An operator that has the stack for a statement of this depth.
#[derive(Debug)]
struct RoomyExec {
    input: Arc<dyn ExecutionPlan>,
    depth: u32,
}

impl DisplayAs for RoomyExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoomyExec")
    }
}

impl ExecutionPlan for RoomyExec {
    fn name(&self) -> &'static str {
        "RoomyExec"
    }

    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) => Ok(Arc::new(Self {
                input,
                depth: self.depth,
            })),
            None => Err(DataFusionError::Internal("no child".to_owned())),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let stream = stack::with_room(self.depth, || self.input.execute(partition, context))?;
        Ok(Box::pin(RoomyStream {
            schema: self.input.schema(),
            stream: Some(stream),
            depth: self.depth,
        }))
    }
}

struct RoomyStream {
    schema: SchemaRef,
    stream: Option<SendableRecordBatchStream>,
    depth: u32,
}

impl Stream for RoomyStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let depth = self.depth;
        match &mut self.stream {
            Some(stream) => stack::with_room(depth, || stream.as_mut().poll_next(context)),
            None => Poll::Ready(None),
        }
    }
}

impl RecordBatchStream for RoomyStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// A stream owns its expressions, and dropping them goes as deep as they do.
impl Drop for RoomyStream {
    fn drop(&mut self) {
        let stream = self.stream.take();
        stack::with_room(self.depth, || drop(stream));
    }
}
