//! A B+tree as pages: its nodes as they are, less their free middles.
//!
//! A page is a node (little-endian): level, count, prefix length, stride,
//! suffix bytes, first child, data bytes, and the front and the back of its
//! data as if a row took four bytes in leaves too. Freed nodes are written as empty leaves. Leaf links are not written;
//! they follow from the tree. The head: magic, root, node count, entry count.

use super::node::{NO_NODE, Node};
use super::{BTree, CHUNK_NODES, KEY_BYTES_MAX};
use crate::changed_pages::{ChangedPages, Paged};
use crate::index_snapshot::{Corrupt, Reader};

const MAGIC: u32 = u32::from_le_bytes(*b"TCb2");
const NODE_HEADER_BYTES: usize = 17;
/// No node the tree makes is larger.
const DATA_BYTES_MAX: usize = 8 * KEY_BYTES_MAX;

impl Paged for BTree {
    fn changed(&mut self) -> &mut ChangedPages {
        &mut self.changed
    }

    fn pages(&self) -> usize {
        self.node_count() as usize
    }

    fn write_page(&self, page: usize, out: &mut Vec<u8>) -> bool {
        let chunk = self.nodes.get(page / CHUNK_NODES);
        let Some(node) = chunk.and_then(|chunk| chunk.get(page % CHUNK_NODES)) else {
            return false;
        };
        let mut header = [0; NODE_HEADER_BYTES];
        header[0] = node.level;
        for (place, short) in header[1..9].chunks_exact_mut(2).zip(node.shape()) {
            place.copy_from_slice(&short.to_le_bytes());
        }
        let first_child = if node.level > 0 {
            node.first_child()
        } else {
            NO_NODE
        };
        header[9..13].copy_from_slice(&first_child.to_le_bytes());
        let data_bytes = node.page_bytes().next_power_of_two() as u32;
        header[13..17].copy_from_slice(&data_bytes.to_le_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(node.prefix());
        out.extend_from_slice(node.suffixes());
        for index in (0..node.len()).rev() {
            out.extend_from_slice(&node.row(index).to_le_bytes());
            out.extend_from_slice(node.behind_row(index));
        }
        true
    }

    fn read_page(&mut self, page: usize, from: &mut Reader<'_>) -> Result<(), Corrupt> {
        let node = read_node(from)?;
        let id = u32::try_from(page).map_err(|_| Corrupt("a node's number is out of range"))?;
        // Nodes are numbered one by one, and each is saved before the next.
        if id > self.node_count() {
            return Err(Corrupt("the node before is missing"));
        }
        if id == self.node_count() {
            self.add_node(Node::empty(0));
        }
        self.data_bytes -= self.node(id).data.len();
        self.data_bytes += node.data.len();
        *self.node_mut(id) = node;
        Ok(())
    }

    fn write_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&self.root.to_le_bytes());
        out.extend_from_slice(&self.node_count().to_le_bytes());
        out.extend_from_slice(&(self.len as u64).to_le_bytes());
    }

    fn read_head(&mut self, from: &mut Reader<'_>) -> Result<(), Corrupt> {
        if from.u32()? != MAGIC {
            return Err(Corrupt("not a B+tree"));
        }
        let root = from.u32()?;
        let nodes = from.u32()?;
        let len = from.u64()? as usize;
        if root >= nodes || nodes > self.node_count() {
            return Err(Corrupt("root or node count out of range"));
        }
        // An older, larger tree may have left pages behind.
        while self.node_count() > nodes {
            let chunk = self.nodes.last_mut();
            let node = chunk.and_then(Vec::pop);
            self.data_bytes -= node.map_or(0, |node| node.data.len());
            if self.nodes.last().is_some_and(Vec::is_empty) {
                self.nodes.pop();
            }
        }
        self.root = root;
        self.len = len;
        self.link_leaves(nodes)?;
        self.changed.clear_all();
        Ok(())
    }
}

impl BTree {
    /// Walks the tree, checks that it is one, links its levels and finds which
    /// nodes are free.
    fn link_leaves(&mut self, nodes: u32) -> Result<(), Corrupt> {
        let mut reached = vec![false; nodes as usize];
        let mut last_of_level = vec![NO_NODE; usize::from(self.node(self.root).level) + 1];
        let mut entries = 0;
        let mut stack = vec![self.root];
        while let Some(id) = stack.pop() {
            if std::mem::replace(&mut reached[id as usize], true) {
                return Err(Corrupt("a node has two parents"));
            }
            let level = self.node(id).level;
            let left = std::mem::replace(&mut last_of_level[usize::from(level)], id);
            self.node_mut(id).prev = left;
            if left != NO_NODE {
                self.node_mut(left).next = id;
            }
            let node = self.node(id);
            if level == 0 {
                entries += node.len();
                continue;
            }
            for index in (0..=node.len()).rev() {
                let child = node.child(index);
                if child >= nodes || self.node(child).level + 1 != level {
                    return Err(Corrupt("a child is not one"));
                }
                stack.push(child);
            }
        }
        if entries != self.len {
            return Err(Corrupt("entry count differs"));
        }
        self.free.clear();
        for id in (0..nodes).rev().filter(|id| !reached[*id as usize]) {
            self.drop_node(id);
        }
        Ok(())
    }
}

fn read_node(reader: &mut Reader<'_>) -> Result<Node, Corrupt> {
    let [level] = reader.array()?;
    let mut shape = [0; 4];
    for short in &mut shape {
        *short = u16::from_le_bytes(reader.array()?);
    }
    let [_, prefix_len, _, suffix_bytes] = shape;
    let mut node = Node::of_page(level, reader.u32()?, shape);
    // How much of its data was free is not kept.
    let data_bytes = reader.u32()? as usize;
    if level == u8::MAX || data_bytes > DATA_BYTES_MAX || node.page_bytes() > data_bytes {
        return Err(Corrupt("a node's lengths do not fit it"));
    }
    let prefix = reader.bytes(prefix_len as usize)?;
    let suffixes = reader.bytes(suffix_bytes as usize)?;
    let slots = reader.bytes(node.page_slot_bytes())?;
    if !node.take_page(prefix, suffixes, slots) {
        return Err(Corrupt("a node's offsets do not ascend"));
    }
    Ok(node)
}
