//! An explained plan, as lines of text or as JSON in PostgreSQL's form.

use thermocline_query::types::json::{is_number, quote};

/// What EXPLAIN has to say.
#[derive(Default)]
pub(super) struct Shown {
    /// Lines in PostgreSQL's form: children behind arrows, what belongs to a node below it.
    pub(super) plan: Vec<String>,
    /// Operators of the analytical path, one a line, children indented by two.
    pub(super) operators: Vec<String>,
    /// The operators are where a short plan went on.
    pub(super) went_on: bool,
    /// What is known of the whole: name and value.
    pub(super) facts: Vec<(&'static str, String)>,
}

/// A node of a plan: its line, what is said of it, and those below it.
#[derive(Default)]
struct Node {
    fields: Vec<(String, String)>,
    below: Vec<Node>,
}

impl Shown {
    /// Of a plan's lines, the last of which says the path.
    pub(super) fn of(mut plan: Vec<String>) -> Self {
        let path = plan.pop().unwrap_or_default();
        let path = path.strip_prefix("Path: ").unwrap_or(&path).to_owned();
        Self {
            plan,
            facts: vec![("Path", path)],
            ..Self::default()
        }
    }

    /// As text.
    pub(super) fn lines(self) -> Vec<String> {
        let facts = self.facts.into_iter();
        let facts = facts.map(|(name, value)| format!("{name}: {value}"));
        let (first, second) = match self.went_on {
            true => (self.plan, self.operators),
            false => (self.operators, self.plan),
        };
        first.into_iter().chain(second).chain(facts).collect()
    }

    /// As JSON.
    pub(super) fn json(self) -> String {
        let mut out = "[\n  {\n".to_owned();
        let mut plans = Vec::new();
        if !self.plan.is_empty() {
            plans.extend(tree(&self.plan, arrow_node).map(|plan| ("Plan", plan)));
        }
        if !self.operators.is_empty() {
            let name = if plans.is_empty() {
                "Plan"
            } else {
                "Plan Taken"
            };
            plans.extend(tree(&self.operators, operator_node).map(|plan| (name, plan)));
        }
        for (name, plan) in &plans {
            out += &format!("    \"{name}\": ");
            write_node(plan, 4, &mut out);
            out += ",\n";
        }
        for (name, value) in &self.facts {
            write_field(
                name,
                value.strip_suffix(" ms").unwrap_or(value),
                4,
                &mut out,
            );
            out += ",\n";
        }
        if out.ends_with(",\n") {
            out.truncate(out.len() - 2);
        }
        out + "\n  }\n]"
    }
}

/// A line: where its text begins, and its node; none: it says more of the node above it.
type Line = (usize, Option<Node>);

/// Of lines in PostgreSQL's form: `->  Index Scan using t_pkey on t`.
fn arrow_node(line: &str, is_first: bool) -> Line {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let (at, text) = match text.strip_prefix("->  ") {
        Some(text) => (indent + 4, text),
        None if is_first => (indent, text),
        None => return (indent, None),
    };
    let mut node = Node::default();
    let (kind, relation) = match text.split_once(" on ") {
        Some((kind, relation)) => (kind, Some(relation)),
        None => (text, None),
    };
    let (kind, index) = match kind.split_once(" using ") {
        Some((kind, index)) => (kind, Some(index)),
        None => (kind, None),
    };
    node.say("Node Type", kind);
    for (name, value) in [("Relation Name", relation), ("Index Name", index)] {
        if let Some(value) = value {
            node.say(name, value);
        }
    }
    (at, Some(node))
}

/// Of operators: `FilterExec: a > 1  (rows=3 time=0.020 ms)`.
fn operator_node(line: &str, _: bool) -> Line {
    let text = line.trim_start();
    let (said, counted) = match text.rsplit_once("  (rows=") {
        Some((said, counted)) => (said, counted.strip_suffix(')')),
        None => (text, None),
    };
    let mut node = Node::default();
    let (kind, details) = said.split_once(": ").unwrap_or((said, ""));
    node.say("Node Type", kind);
    if !details.is_empty() {
        node.say("Details", details);
    }
    if let Some(counted) = counted {
        let (rows, time) = counted.split_once(" time=").unwrap_or((counted, ""));
        node.say("Actual Rows", rows);
        if let Some(time) = time.strip_suffix(" ms") {
            node.say("Actual Processor Time", time);
        }
    }
    (line.len() - text.len(), Some(node))
}

/// The node of the first line, with those below it; none of no lines.
fn tree(lines: &[String], read: impl Fn(&str, bool) -> Line) -> Option<Node> {
    let mut open: Vec<(usize, Node)> = Vec::new();
    let mut roots = Vec::new();
    let mut close = |open: &mut Vec<(usize, Node)>, at: usize| {
        while open.last().is_some_and(|(column, _)| *column >= at) {
            let Some((_, done)) = open.pop() else { break };
            match open.last_mut() {
                Some((_, above)) => above.below.push(done),
                None => roots.push(done),
            }
        }
    };
    for (number, line) in lines.iter().enumerate() {
        match read(line, number == 0) {
            (at, Some(node)) => {
                close(&mut open, at);
                open.push((at, node));
            }
            (at, None) => {
                close(&mut open, at);
                if let Some((_, node)) = open.last_mut() {
                    let text = line.trim_start();
                    let (name, value) = text.split_once(": ").unwrap_or(("Note", text));
                    node.say(name, value);
                }
            }
        }
    }
    close(&mut open, 0);
    // A plan has one root. What stands beside it all the same is shown below it.
    roots.into_iter().reduce(|mut root, beside| {
        root.below.push(beside);
        root
    })
}

impl Node {
    fn say(&mut self, name: &str, value: &str) {
        self.fields.push((name.to_owned(), value.to_owned()));
    }
}

fn write_node(node: &Node, indent: usize, out: &mut String) {
    *out += "{\n";
    for (number, (name, value)) in node.fields.iter().enumerate() {
        if number > 0 {
            *out += ",\n";
        }
        write_field(name, value, indent + 2, out);
    }
    if !node.below.is_empty() {
        *out += &format!(",\n{:width$}\"Plans\": [\n", "", width = indent + 2);
        for (number, below) in node.below.iter().enumerate() {
            if number > 0 {
                *out += ",\n";
            }
            *out += &format!("{:width$}", "", width = indent + 4);
            write_node(below, indent + 4, out);
        }
        *out += &format!("\n{:width$}]", "", width = indent + 2);
    }
    *out += &format!("\n{:indent$}}}", "");
}

fn write_field(name: &str, value: &str, indent: usize, out: &mut String) {
    *out += &format!("{:indent$}", "");
    quote(name, out);
    *out += ": ";
    match is_number(value) {
        true => *out += value,
        false => quote(value, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_of_a_plan_are_in_its_tree() {
        let plan = [
            "Update on t",
            "  ->  Nested Loop",
            "        ->  Index Scan using a_pkey on a",
            "              Index Cond: (k = 3)",
            "        ->  Seq Scan on b",
        ];
        let plan = plan.map(str::to_owned);
        let root = tree(&plan, arrow_node).unwrap();
        let below = |node: &Node| -> Vec<String> {
            node.below.iter().map(|n| n.fields[0].1.clone()).collect()
        };
        assert_eq!(below(&root), ["Nested Loop"]);
        assert_eq!(below(&root.below[0]), ["Index Scan", "Seq Scan"]);
        let said = &root.below[0].below[0].fields;
        assert!(said.contains(&("Index Cond".to_owned(), "(k = 3)".to_owned())));

        let two = ["A: x", "  B", "C"].map(str::to_owned);
        let root = tree(&two, operator_node).unwrap();
        assert_eq!(below(&root), ["B", "C"]);
        assert!(tree(&[], operator_node).is_none());
    }
}
