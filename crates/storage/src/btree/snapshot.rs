//! A B+tree as bytes: its nodes as they are, less their free middles.
//!
//! Layout (little-endian): magic, root, node count, entry count; then for each
//! node: level, count, prefix length, stride, suffix bytes, first child, data
//! bytes, and the front and the back of its data. Freed nodes are written as
//! empty leaves. Leaf links are not written; they follow from the tree.

use std::io::{self, Write};

use super::node::{NO_NODE, Node};
use super::{BTree, KEY_BYTES_MAX};
use crate::index_snapshot::{Corrupt, Reader};

const MAGIC: u32 = u32::from_le_bytes(*b"TCb1");
const NODE_HEADER_BYTES: usize = 17;
/// No node the tree makes is larger.
const DATA_BYTES_MAX: usize = 8 * KEY_BYTES_MAX;

impl BTree {
    /// Writes the tree's snapshot.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let nodes: usize = self.nodes.iter().map(Vec::len).sum();
        out.write_all(&MAGIC.to_le_bytes())?;
        out.write_all(&self.root.to_le_bytes())?;
        out.write_all(&(nodes as u32).to_le_bytes())?;
        out.write_all(&(self.len as u64).to_le_bytes())?;
        for node in self.nodes.iter().flatten() {
            let mut header = [0; NODE_HEADER_BYTES];
            header[0] = node.level;
            let shorts = [node.count, node.prefix_len, node.stride, node.suffix_bytes];
            for (place, short) in header[1..9].chunks_exact_mut(2).zip(shorts) {
                place.copy_from_slice(&short.to_le_bytes());
            }
            header[9..13].copy_from_slice(&node.first_child.to_le_bytes());
            header[13..17].copy_from_slice(&(node.data.len() as u32).to_le_bytes());
            out.write_all(&header)?;
            out.write_all(&node.data[..node.front_bytes()])?;
            let slots = node.len() * node.slot_bytes();
            out.write_all(&node.data[node.data.len() - slots..])?;
        }
        Ok(())
    }

    /// The tree that [`BTree::write_to`] wrote.
    ///
    /// # Errors
    /// [`Corrupt`] where lengths, links or levels do not make a tree.
    pub fn read_from(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(bytes);
        if reader.u32()? != MAGIC {
            return Err(Corrupt("not a B+tree"));
        }
        let root = reader.u32()?;
        let nodes = reader.u32()?;
        let len = reader.u64()? as usize;
        if root >= nodes || reader.remaining() < nodes as usize * NODE_HEADER_BYTES {
            return Err(Corrupt("root or node count out of range"));
        }
        let mut tree = Self::new();
        tree.nodes.clear();
        for _ in 0..nodes {
            let node = read_node(&mut reader)?;
            tree.add_node(node);
        }
        reader.end()?;
        tree.root = root;
        tree.len = len;
        tree.link_leaves(nodes)?;
        Ok(tree)
    }

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
        for id in (0..nodes).rev().filter(|id| !reached[*id as usize]) {
            self.drop_node(id);
        }
        Ok(())
    }
}

fn read_node(reader: &mut Reader<'_>) -> Result<Node, Corrupt> {
    let [level] = reader.array()?;
    let mut node = Node::empty(level);
    node.count = u16::from_le_bytes(reader.array()?);
    node.prefix_len = u16::from_le_bytes(reader.array()?);
    node.stride = u16::from_le_bytes(reader.array()?);
    node.suffix_bytes = u16::from_le_bytes(reader.array()?);
    node.first_child = reader.u32()?;
    let room = reader.u32()? as usize;
    if level == u8::MAX || room > DATA_BYTES_MAX || node.used_bytes() > room {
        return Err(Corrupt("a node's lengths do not fit it"));
    }
    node.data = vec![0; room].into_boxed_slice();
    let front = node.front_bytes();
    node.data[..front].copy_from_slice(reader.bytes(front)?);
    let slots = node.len() * node.slot_bytes();
    node.data[room - slots..].copy_from_slice(reader.bytes(slots)?);
    if !node.is_sound() {
        return Err(Corrupt("a node's offsets do not ascend"));
    }
    Ok(node)
}
