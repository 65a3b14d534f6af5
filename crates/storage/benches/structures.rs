//! What the memory structures cost: nanoseconds an operation and bytes an
//! entry, beside the standard library's maps (whose hash map is hashbrown's).
//!
//! `cargo bench -p thermocline-storage --bench structures -- [entries]`

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Instant;

use thermocline_storage::arena::Arena;
use thermocline_storage::btree::BTree;
use thermocline_storage::changed_pages::Paged;
use thermocline_storage::hash_index::HashIndex;
use thermocline_storage::heap::Heap;
use thermocline_storage::index_snapshot::Reader;
use thermocline_storage::row_directory::{RowDirectory, Word};

/// Takes a `u64` that is a hash already for its hash.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

fn mix(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn timed(name: &str, operations: usize, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    let ns = start.elapsed().as_nanos() as f64 / operations as f64;
    println!("{name:<44} {ns:>8.1} ns");
}

fn size(name: &str, bytes: usize, entries: usize) {
    let each = bytes as f64 / entries as f64;
    println!("{name:<44} {each:>8.2} bytes");
}

fn hash_indexes(entries: usize) {
    println!("-- hash index, {entries} entries");
    let keys: Vec<u64> = (0..entries as u64).map(mix).collect();
    // Looked up in another order than inserted.
    let order: Vec<u64> = (0..entries as u64)
        .map(|i| keys[(mix(i ^ 77) % entries as u64) as usize])
        .collect();
    let absent: Vec<u64> = (0..entries as u64).map(|i| mix(i + (1 << 40))).collect();

    let mut index = HashIndex::new();
    let mut longest_us = 0;
    for (row, key) in keys.iter().enumerate() {
        let start = Instant::now();
        index.insert(*key, row as u32);
        longest_us = longest_us.max(start.elapsed().as_micros());
    }
    println!(
        "{:<44} {longest_us:>8} us",
        "ours, longest insert (with preemption)"
    );
    index = HashIndex::new();
    timed("ours, insert", entries, || {
        for (row, key) in keys.iter().enumerate() {
            index.insert(*key, row as u32);
        }
    });
    timed("ours, hit", entries, || {
        for key in &order {
            black_box(index.candidates(*key).next());
        }
    });
    timed("ours, hit, each after the one before", entries, || {
        let mut last = 0;
        for key in &order {
            // Rows are below 2^32, so this is the key, but known only then.
            let row = index.candidates(*key ^ black_box(last) >> 32).next();
            last = u64::from(row.unwrap_or(0));
        }
        black_box(last);
    });
    timed("ours, miss", entries, || {
        for key in &absent {
            black_box(index.candidates(*key).next());
        }
    });
    size("ours", index.bytes(), entries);
    let mut snapshot = Vec::new();
    timed("ours, pages saved, an entry", entries, || {
        (0..index.pages()).for_each(|page| {
            index.write_page(page, &mut snapshot);
        });
        index.write_head(&mut snapshot);
    });
    timed("ours, remove", entries, || {
        for (row, key) in keys.iter().enumerate() {
            assert!(index.remove(*key, row as u32));
        }
    });

    let mut map: HashMap<u64, u32, BuildHasherDefault<Identity>> = HashMap::default();
    timed("HashMap<u64, u32>, insert", entries, || {
        for (row, key) in keys.iter().enumerate() {
            map.insert(*key, row as u32);
        }
    });
    timed("HashMap<u64, u32>, hit", entries, || {
        for key in &order {
            black_box(map.get(key));
        }
    });
    timed("HashMap<u64, u32>, miss", entries, || {
        for key in &absent {
            black_box(map.get(key));
        }
    });
    size("HashMap<u64, u32>", map.capacity() * 8 / 7 * 17, entries);
}

fn trees(entries: usize) {
    println!("-- B+tree, {entries} entries of 4-byte keys");
    let random: Vec<u32> = {
        let mut keys: Vec<u32> = (0..entries as u32).collect();
        for i in (1..keys.len()).rev() {
            keys.swap(i, (mix(i as u64) % (i as u64 + 1)) as usize);
        }
        keys
    };
    let mut tree = BTree::new();
    timed("ours, insert ascending", entries, || {
        for key in 0..entries as u32 {
            tree.insert(&key.to_be_bytes(), key).expect("short key");
        }
    });
    size("ours, ascending", tree.bytes(), entries);
    tree = BTree::new();
    timed("ours, insert at random", entries, || {
        for key in &random {
            tree.insert(&key.to_be_bytes(), *key).expect("short key");
        }
    });
    size("ours, random", tree.bytes(), entries);
    timed("ours, hit", entries, || {
        for key in random.iter().rev() {
            black_box(tree.get_first(&key.to_be_bytes()));
        }
    });
    timed("ours, scan, an entry", entries, || {
        let mut sum = 0u64;
        let _ = tree.scan(Bound::Unbounded, Bound::Unbounded, true, |_, row| {
            sum += u64::from(row);
            ControlFlow::Continue(())
        });
        black_box(sum);
    });
    let mut snapshot = Vec::new();
    timed("ours, pages saved, an entry", entries, || {
        (0..tree.pages()).for_each(|page| {
            tree.write_page(page, &mut snapshot);
        });
        tree.write_head(&mut snapshot);
    });
    timed("ours, pages restored, an entry", entries, || {
        let mut reader = Reader::new(&snapshot);
        let mut restored = BTree::new();
        for page in 0..tree.pages() {
            let read = restored.read_page(page, &mut reader);
            read.expect("just written");
        }
        restored.read_head(&mut reader).expect("just written");
        black_box(restored);
    });
    timed("ours, remove", entries, || {
        for key in random.iter().rev() {
            assert!(tree.remove(&key.to_be_bytes(), *key));
        }
    });

    let mut map = BTreeMap::new();
    timed("BTreeMap<u32, u32>, insert at random", entries, || {
        for key in &random {
            map.insert(*key, *key);
        }
    });
    timed("BTreeMap<u32, u32>, hit", entries, || {
        for key in random.iter().rev() {
            black_box(map.get(key));
        }
    });
    let mut map: BTreeMap<Box<[u8]>, u32> = BTreeMap::new();
    timed(
        "BTreeMap<Box<[u8]>, u32>, insert at random",
        entries,
        || {
            for key in &random {
                map.insert(Box::new(key.to_be_bytes()), *key);
            }
        },
    );
    timed("BTreeMap<Box<[u8]>, u32>, hit", entries, || {
        for key in random.iter().rev() {
            black_box(map.get(key.to_be_bytes().as_slice()));
        }
    });
}

/// How keys and rows come in, and what a tree of them takes.
fn tree_patterns(entries: usize) {
    println!("-- B+tree, {entries} entries, 9-byte and 5-byte integer keys");
    let order: Vec<u32> = (0..entries as u64).map(|i| mix(i) as u32).collect();
    type Pattern<'a> = (&'a str, &'a dyn Fn(usize) -> (u32, u32));
    let patterns: [Pattern<'_>; 8] = [
        ("each key, rows serial", &|i| (i as u32, i as u32)),
        ("2nd key, rows serial", &|i| (i as u32 * 2, i as u32)),
        ("3rd key, rows serial", &|i| (i as u32 * 3, i as u32)),
        ("16th key, rows serial", &|i| (i as u32 * 16, i as u32)),
        ("2nd key descending", &|i| (!(i as u32 * 2), i as u32)),
        ("2nd key, rows random", &|i| (i as u32 * 2, order[i])),
        ("keys random, rows serial", &|i| (order[i], i as u32)),
        ("keys and rows random", &|i| (order[i], !order[i] / 7)),
    ];
    for (name, entry) in patterns {
        for key_bytes in [9, 5] {
            let mut key = [1, 0x80, 0, 0, 0, 0, 0, 0, 0];
            let key = &mut key[..key_bytes];
            let mut tree = BTree::new();
            timed(&format!("{name}, {key_bytes}: insert"), entries, || {
                for index in 0..entries {
                    let (number, row) = entry(index);
                    key[key_bytes - 4..].copy_from_slice(&number.to_be_bytes());
                    tree.insert(key, row).expect("short key");
                }
            });
            timed(&format!("{name}, {key_bytes}: hit"), entries, || {
                for at in &order {
                    let (number, _) = entry(*at as usize % entries);
                    key[key_bytes - 4..].copy_from_slice(&number.to_be_bytes());
                    black_box(tree.get_first(key));
                }
            });
            size(&format!("{name}, {key_bytes}"), tree.bytes(), entries);
        }
    }
}

fn heaps(entries: usize, huge_pages: bool) {
    println!("-- heap, {entries} tuples of 100 bytes, huge pages: {huge_pages}");
    let arena = Arc::new(Arena::reserve(8 << 30).expect("address space"));
    let mut heap = Heap::new(arena.clone());
    let mut directory = RowDirectory::new();
    let payload = [7; 100];
    timed("heap and directory, insert", entries, || {
        for _ in 0..entries {
            let row = directory.allocate().expect("row ids left");
            let ptr = heap.insert(row, 0, &payload).expect("room");
            directory.set(row, Word::hot(ptr));
        }
    });
    size("heap", heap.allocated_bytes(), entries);
    size("directory", directory.bytes(), entries);
    if huge_pages {
        // Two rounds, of ten looks each.
        for _ in 0..20 {
            arena.join_pages(usize::MAX);
        }
        size("heap, in huge pages", arena.huge_bytes(), entries);
    }
    let order: Vec<u32> = (0..entries as u64)
        .map(|i| (mix(i) % entries as u64) as u32)
        .collect();
    timed("heap and directory, read at random", entries, || {
        let mut sum = 0;
        for row in &order {
            if let Some(hot) = directory.get(*row).as_hot() {
                sum += usize::from(heap.payload(hot.pointer())[50]);
            }
        }
        black_box(sum);
    });
    timed("heap, free and insert in another's place", entries, || {
        for row in &order {
            if let Some(hot) = directory.get(*row).as_hot() {
                heap.free(hot.pointer());
                let ptr = heap.insert(*row, 0, &payload).expect("room");
                directory.set(*row, Word::hot(ptr));
            }
        }
    });
    let before_bytes = heap.allocated_bytes();
    let doomed: Vec<u32> = (0..entries as u32).filter(|row| row % 4 != 0).collect();
    timed("heap, free", doomed.len(), || {
        for row in &doomed {
            if let Some(hot) = directory.get(*row).as_hot() {
                heap.free(hot.pointer());
                directory.release(*row);
            }
        }
    });
    let mut moved = 0;
    let start = Instant::now();
    while heap
        .evacuate(1 << 20, &mut |row, _, new| {
            directory.set(row, Word::hot(new));
            moved += 1;
        })
        .released_bytes
        > 0
    {}
    let ns = start.elapsed().as_nanos() as f64 / f64::from(moved.max(1));
    println!("{:<44} {ns:>8.1} ns", "heap, evacuate, a tuple moved");
    let share = heap.allocated_bytes() as f64 / before_bytes as f64;
    println!("{:<44} {share:>8.3}", "heap, bytes left of those before");
}

fn main() {
    let asked = std::env::args().skip(1).find_map(|word| word.parse().ok());
    let entries = asked.unwrap_or(1_000_000);
    hash_indexes(entries);
    trees(entries);
    tree_patterns(entries);
    heaps(entries, false);
    heaps(entries, true);
}
