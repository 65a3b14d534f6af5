use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

const MIB: usize = 1024 * 1024;

fn arena() -> Arc<Arena> {
    let arena = Arena::reserve_for(64 * MIB).unwrap();
    arena.set_cache_limit_bytes(0);
    Arc::new(arena)
}

fn pattern(row: u32, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (row as usize * 31 + i * 7) as u8)
        .collect()
}

#[derive(Clone, Debug)]
enum Step {
    Insert(usize),
    Free(usize),
    Replace(usize, usize),
    SetCold(usize, u64),
    Evacuate(usize),
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        8 => 0usize..300,
        4 => 960usize..1060,
        2 => 300usize..5000,
        1 => 5000usize..100_000,
        1 => 100_000..PAYLOAD_BYTES_MAX,
    ]
}

fn of_any_class() -> impl Strategy<Value = usize> {
    prop_oneof![
        2 => 0usize..5000,
        2 => 5000usize..size_class::SHARED_MAX,
        4 => size_class::SHARED_MAX..PAYLOAD_BYTES_MAX,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => length().prop_map(Step::Insert),
        4 => any::<usize>().prop_map(Step::Free),
        2 => (any::<usize>(), length()).prop_map(|(i, n)| Step::Replace(i, n)),
        1 => (any::<usize>(), any::<u64>()).prop_map(|(i, c)| Step::SetCold(i, c)),
        1 => (0usize..200_000).prop_map(Step::Evacuate),
    ]
}

/// What a tuple must be: row, cold word, payload.
type Model = HashMap<TuplePtr, (u32, u64, Vec<u8>)>;

fn nth(model: &Model, index: usize) -> Option<TuplePtr> {
    let mut keys: Vec<_> = model.keys().copied().collect();
    keys.sort_unstable();
    (!keys.is_empty()).then(|| keys[index % keys.len()])
}

fn check(heap: &Heap, arena: &Arena, model: &Model) {
    assert_eq!(heap.tuples(), model.len());
    let live: usize = model.values().map(|t| t.2.len() + TUPLE_HEADER_BYTES).sum();
    assert_eq!(heap.live_bytes(), live);
    assert_eq!(heap.allocated_bytes(), arena.used_bytes());
    assert!(heap.live_bytes() <= heap.slot_bytes);
    for (&ptr, (row, cold, payload)) in model {
        assert_eq!(heap.payload(ptr), payload);
        assert_eq!((heap.row(ptr), heap.cold(ptr)), (*row, *cold));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Tuples of all sizes come and go many times over, within a memory that a few dozen of the
    /// large ones fill: there is always room for one that fits into what others have left.
    #[test]
    fn large_tuples_find_room_where_others_have_left(
        steps in prop::collection::vec((of_any_class(), any::<usize>()), 200..600),
    ) {
        let memory_bytes = 16 * MIB;
        let arena = Arc::new(Arena::reserve_for(memory_bytes).unwrap());
        arena.set_cache_limit_bytes(memory_bytes / 256);
        let mut heaps: Vec<_> = (0..4).map(|_| Heap::new(arena.clone())).collect();
        let mut held: Vec<(usize, TuplePtr, u32, usize)> = Vec::new();
        for (row, (len, which)) in steps.into_iter().enumerate() {
            let live = |heaps: &[Heap]| heaps.iter().map(Heap::live_bytes).sum::<usize>();
            while live(&heaps) + len > memory_bytes - MIB {
                let (heap, ptr, row, len) = held.swap_remove(which % held.len());
                let payload = heaps[heap].payload(ptr);
                prop_assert_eq!(payload.len(), len);
                let (first, last) = (payload.first(), payload.last());
                prop_assert!([first, last].iter().all(|b| b.is_none_or(|b| *b == row as u8)));
                heaps[heap].free(ptr);
            }
            let heap = row % heaps.len();
            let ptr = heaps[heap].insert_with(row as u32, 0, len, |place| {
                if let Some(first) = place.first_mut() {
                    *first = row as u8;
                }
                if let Some(last) = place.last_mut() {
                    *last = row as u8;
                }
            });
            prop_assert!(ptr.is_some(), "{} bytes beside {}", len, live(&heaps));
            held.push((heap, ptr.unwrap(), row as u32, len));
            // A large one takes a span of its own, which is below twice its length.
            let large = held.iter().filter(|t| t.3 > size_class::SHARED_MAX);
            let large: usize = large.map(|t| t.3).sum();
            let most = 2 * large + heaps.len() * 140 * (128 << 10) + memory_bytes;
            prop_assert!(arena.used_bytes() <= most, "{} of {most}", arena.used_bytes());
        }
        drop(heaps);
        arena.release_cached();
        prop_assert_eq!(arena.used_bytes(), 0);
    }

    #[test]
    fn a_large_tuple_that_leaves_takes_its_memory_along(
        lens in prop::collection::vec(size_class::SHARED_MAX..PAYLOAD_BYTES_MAX, 2..40),
    ) {
        let arena = Arc::new(Arena::reserve_for(64 * MIB).unwrap());
        arena.set_cache_limit_bytes(0);
        let mut heap = Heap::new(arena.clone());
        let mut held = Vec::new();
        for (row, len) in lens.iter().enumerate() {
            let before = arena.used_bytes();
            held.push((heap.insert_with(row as u32, 0, *len, |_| {}).unwrap(), before));
        }
        for (ptr, before) in held.into_iter().rev() {
            heap.free(ptr);
            prop_assert_eq!(arena.used_bytes(), before);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn tuples_are_what_was_stored(
        steps in prop::collection::vec(step(), 1..400),
        many in any::<bool>(),
    ) {
        let arena = arena();
        let mut heap = Heap::new(arena.clone());
        let mut model = Model::new();
        // Enough of about one size for fitted pages.
        for number in 0..if many { 1100 } else { 0 } {
            let (row, payload) = (1 << 20 | number, pattern(number, 960 + number as usize % 50));
            let ptr = heap.insert(row, 0, &payload).unwrap();
            model.insert(ptr, (row, 0, payload));
        }
        for (row, step) in steps.into_iter().enumerate() {
            let row = row as u32;
            match step {
                Step::Insert(len) => {
                    let payload = pattern(row, len);
                    let ptr = heap.insert(row, u64::from(row), &payload).unwrap();
                    let old = model.insert(ptr, (row, u64::from(row), payload));
                    prop_assert!(old.is_none());
                }
                Step::Free(index) => if let Some(ptr) = nth(&model, index) {
                    heap.free(ptr);
                    model.remove(&ptr);
                },
                Step::Replace(index, len) => if let Some(ptr) = nth(&model, index) {
                    let payload = pattern(row, len);
                    let (kept, _, old) = model.remove(&ptr).unwrap();
                    let mut now = ptr;
                    if heap.overwrite(ptr, &payload) {
                        // The way back takes nothing.
                        prop_assert!(heap.overwrite(ptr, &old) && heap.overwrite(ptr, &payload));
                    } else {
                        prop_assert_eq!(heap.payload(ptr), old);
                        now = heap.insert(kept, 0, &payload).unwrap();
                        heap.free(ptr);
                    }
                    prop_assert!(model.insert(now, (kept, 0, payload)).is_none());
                },
                Step::SetCold(index, cold) => if let Some(ptr) = nth(&model, index) {
                    heap.set_cold(ptr, cold);
                    model.get_mut(&ptr).unwrap().1 = cold;
                },
                Step::Evacuate(max_bytes) => {
                    let before_bytes = heap.allocated_bytes();
                    let done = heap.evacuate(max_bytes, &mut |row, old, new| {
                        let tuple = model.remove(&old).unwrap();
                        assert_eq!(tuple.0, row);
                        assert!(model.insert(new, tuple).is_none());
                    });
                    prop_assert_eq!(before_bytes - done.released_bytes, heap.allocated_bytes());
                }
            }
        }
        check(&heap, &arena, &model);
        let ptrs: Vec<_> = model.keys().copied().collect();
        for ptr in ptrs {
            heap.free(ptr);
        }
        prop_assert_eq!((heap.tuples(), heap.live_bytes(), arena.used_bytes()), (0, 0, 0));
    }
}

/// How many heaps share pages in the test below.
const SHARING: usize = 3;

#[derive(Clone, Debug)]
enum SharingStep {
    OfHeap(Step),
    /// Its table goes.
    Drop,
}

fn sharing_step() -> impl Strategy<Value = (usize, SharingStep)> {
    let step = prop_oneof![
        40 => step().prop_map(SharingStep::OfHeap),
        1 => Just(SharingStep::Drop),
    ];
    (0..SHARING, step)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Heaps whose first tuples lie in the same pages do not see each other, and give back all
    /// they had when they go.
    #[test]
    fn heaps_that_share_pages_are_as_if_alone(
        steps in prop::collection::vec(sharing_step(), 1..600),
        many in any::<bool>(),
    ) {
        let arena = arena();
        let common = CommonPages::new(arena.clone());
        let mut heaps: Vec<_> = (0..SHARING).map(|_| Heap::sharing(&common)).collect();
        let mut models: [Model; SHARING] = Default::default();
        for number in 0..if many { 1000 } else { 0 } {
            let (row, payload) = (1 << 20 | number, pattern(number, number as usize % 50));
            let ptr = heaps[0].insert(row, 0, &payload).unwrap();
            models[0].insert(ptr, (row, 0, payload));
        }
        for (row, (which, step)) in (0u32..).zip(steps) {
            let (heap, model) = (&mut heaps[which], &mut models[which]);
            match step {
                SharingStep::Drop => {
                    *heap = Heap::sharing(&common);
                    model.clear();
                }
                SharingStep::OfHeap(Step::Insert(len)) => {
                    let payload = pattern(row, len);
                    let ptr = heap.insert(row, 1, &payload).unwrap();
                    model.insert(ptr, (row, 1, payload));
                }
                SharingStep::OfHeap(Step::Free(index)) => if let Some(ptr) = nth(model, index) {
                    heap.free(ptr);
                    model.remove(&ptr);
                },
                SharingStep::OfHeap(Step::Replace(index, len)) => if let Some(ptr) = nth(model, index) {
                    let payload = pattern(row, len);
                    let tuple = model.get_mut(&ptr).unwrap();
                    if heap.overwrite(ptr, &payload) {
                        *tuple = (tuple.0, 0, payload);
                    }
                },
                SharingStep::OfHeap(Step::SetCold(index, cold)) => if let Some(ptr) = nth(model, index) {
                    heap.set_cold(ptr, cold);
                    model.get_mut(&ptr).unwrap().1 = cold;
                },
                SharingStep::OfHeap(Step::Evacuate(max_bytes)) => {
                    heap.evacuate(max_bytes, &mut |_, old, new| {
                        let tuple = model.remove(&old).unwrap();
                        assert!(model.insert(new, tuple).is_none());
                    });
                }
            }
        }
        let mut places = std::collections::HashSet::new();
        for (heap, model) in heaps.iter().zip(&models) {
            prop_assert!(model.keys().all(|ptr| places.insert(*ptr)));
            let live: usize = model.values().map(|t| t.2.len() + TUPLE_HEADER_BYTES).sum();
            prop_assert_eq!((heap.tuples(), heap.live_bytes()), (model.len(), live));
            prop_assert!(live <= heap.slot_bytes + heap.common_bytes);
            for (&ptr, (row, cold, payload)) in model {
                prop_assert_eq!(heap.payload(ptr), payload);
                prop_assert_eq!((heap.row(ptr), heap.cold(ptr)), (*row, *cold));
            }
        }
        let own: usize = heaps.iter().map(|heap| heap.allocated_bytes).sum();
        prop_assert_eq!(own + common.allocated_bytes(), arena.used_bytes());
        for (heap, model) in heaps.iter_mut().zip(&models) {
            model.keys().for_each(|ptr| heap.free(*ptr));
        }
        prop_assert_eq!(arena.used_bytes(), 0);
    }
}

/// Seven rows of seven lengths each, as a partition has of a small table: a page for each length
/// of each took 112 KiB.
#[test]
fn small_heaps_take_little_more_than_their_tuples() {
    let arena = arena();
    let common = CommonPages::new(arena.clone());
    let mut heaps: Vec<_> = (0..1000).map(|_| Heap::sharing(&common)).collect();
    let mut live = 0;
    for heap in &mut heaps {
        for row in 0..7u32 {
            heap.insert(row, 0, &pattern(row, 30 + 40 * row as usize))
                .unwrap();
        }
        live += heap.live_bytes();
    }
    assert!(arena.used_bytes() < live + live / 8 + 8 * SPAN_BYTES_MIN);
    // One that grows has pages of its own, which `evacuate` can empty.
    for row in 7..5000 {
        heaps[0].insert(row, 0, &[1; 30]).unwrap();
    }
    assert!(heaps[0].allocated_bytes > 10 * SPAN_BYTES_MIN);
    drop(heaps);
    assert_eq!(arena.used_bytes(), 0);
}

#[test]
fn evacuation_gives_back_what_random_deletes_left() {
    let arena = arena();
    let mut heap = Heap::new(arena.clone());
    let mut model = Model::new();
    for row in 0..100_000u32 {
        let payload = pattern(row, 100 + row as usize % 3);
        let ptr = heap.insert(row, 0, &payload).unwrap();
        model.insert(ptr, (row, 0, payload));
    }
    let full_bytes = heap.allocated_bytes();
    assert!(heap.fragmentation() < 0.02);
    // Nine of ten go, so that hardly a page is empty by itself.
    let doomed: Vec<_> = model
        .iter()
        .filter(|t| t.1.0 % 10 != 0)
        .map(|t| *t.0)
        .collect();
    for ptr in doomed {
        heap.free(ptr);
        model.remove(&ptr);
    }
    assert!(heap.fragmentation() > 0.8);
    let mut rounds = 0;
    loop {
        let done = heap.evacuate(64 * 1024, &mut |_, old, new| {
            let tuple = model.remove(&old).unwrap();
            model.insert(new, tuple);
        });
        assert!(done.moved_bytes < 64 * 1024 + SPAN_BYTES_MIN);
        rounds += 1;
        if done.released_bytes == 0 {
            break;
        }
    }
    assert!(rounds > 3);
    assert!(heap.allocated_bytes() < full_bytes / 9);
    assert!(heap.fragmentation() < 0.05);
    check(&heap, &arena, &model);
}

/// Tuples of 1 KB in fitted pages: 31 in 32 KiB instead of 15 in 16; of 100 bytes in slots of
/// 136 bytes instead of 144.
#[test]
fn many_tuples_of_a_size_lie_closer() {
    lie_closer(20_000, 1013, 1062);
    lie_closer(40_000, 113, 140);
}

fn lie_closer(rows: u32, payload_bytes: usize, most: usize) {
    let arena = arena();
    let mut heap = Heap::new(arena.clone());
    let mut model = Model::new();
    for row in 0..rows {
        let payload = pattern(row, payload_bytes);
        let ptr = heap.insert(row, 0, &payload).unwrap();
        model.insert(ptr, (row, 0, payload));
    }
    let per_tuple = heap.allocated_bytes() / rows as usize;
    assert!(per_tuple < most, "{per_tuple}");
    // The first of them, in ordinary pages, leave as those behind them come.
    let mut ptrs: Vec<_> = model.keys().copied().collect();
    ptrs.sort_unstable();
    for (ptr, row) in ptrs.into_iter().step_by(3).zip(rows..) {
        heap.free(ptr);
        model.remove(&ptr);
        let payload = pattern(row, payload_bytes - row as usize % 13);
        let ptr = heap.insert(row, 0, &payload).unwrap();
        model.insert(ptr, (row, 0, payload));
    }
    heap.evacuate(MIB, &mut |_, old, new| {
        let tuple = model.remove(&old).unwrap();
        model.insert(new, tuple);
    });
    check(&heap, &arena, &model);
}

#[test]
fn a_page_that_becomes_empty_returns_its_span() {
    let arena = arena();
    let mut heap = Heap::new(arena.clone());
    let ptrs: Vec<_> = (0..10_000)
        .map(|row| heap.insert(row, 0, &[1; 48]).unwrap())
        .collect();
    let pages = heap.allocated_bytes() / SPAN_BYTES_MIN;
    assert_eq!(pages, 10_000usize.div_ceil((SPAN_BYTES_MIN - 64) / 64));
    for (freed, ptr) in ptrs.into_iter().enumerate() {
        heap.free(ptr);
        let full_pages = (10_000 - freed - 1).div_ceil((SPAN_BYTES_MIN - 64) / 64);
        assert!(heap.allocated_bytes() / SPAN_BYTES_MIN <= full_pages + 2);
    }
    assert_eq!(arena.used_bytes(), 0);
}

#[test]
fn exhaustion_leaves_the_tuple_as_it_was() {
    let arena = Arc::new(Arena::reserve(4 * MIB).unwrap());
    let mut heap = Heap::new(arena.clone());
    let mut ptrs = Vec::new();
    while let Some(ptr) = heap.insert(7, 9, &[5; 1000]) {
        ptrs.push(ptr);
    }
    assert!(ptrs.len() * 1024 > 3 * MIB);
    // What is left has no room for a page of those, but maybe for one of these.
    while heap.insert(8, 0, &[4; 3000]).is_some() {}
    assert!(!heap.overwrite(ptrs[0], &[6; 3000]));
    assert_eq!(heap.insert(7, 0, &[6; 3000]), None);
    assert_eq!(heap.payload(ptrs[0]), &[5; 1000]);
    assert_eq!(heap.cold(ptrs[0]), 9);
    assert_eq!(heap.insert(0, 0, &vec![0; PAYLOAD_BYTES_MAX + 1]), None);
    drop(heap);
    arena.release_cached();
    assert_eq!(arena.used_bytes(), 0);
}

#[test]
fn the_longest_payload_fits() {
    let arena = arena();
    let mut heap = Heap::new(arena);
    let payload = pattern(1, PAYLOAD_BYTES_MAX);
    let ptrs: Vec<_> = (0..4)
        .map(|row| heap.insert(row, 0, &payload).unwrap())
        .collect();
    assert_eq!(heap.allocated_bytes(), 8 * MIB);
    for ptr in ptrs {
        assert_eq!(heap.payload(ptr), payload);
    }
}

#[test]
#[should_panic(expected = "freed a tuple twice")]
fn freeing_twice_is_caught() {
    let mut heap = Heap::new(arena());
    let ptr = heap.insert(1, 0, b"tuple").unwrap();
    let _other = heap.insert(2, 0, b"tuple").unwrap();
    heap.free(ptr);
    heap.free(ptr);
}

#[test]
#[should_panic(expected = "leads nowhere")]
fn a_stray_pointer_is_caught() {
    let heap = Heap::new(arena());
    heap.payload(TuplePtr(1 << 39));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "not a live tuple")]
fn a_pointer_into_a_tuple_is_caught_in_debug_builds() {
    let mut heap = Heap::new(arena());
    let ptr = heap.insert(1, 0, &[0; 100]).unwrap();
    heap.payload(TuplePtr(ptr.0 + 1));
}

#[test]
fn tuples_to_both_sides_of_each_boundary_of_addresses_are_what_was_stored() {
    // 4 GiB of bytes, of which addresses count eighths; 2^32 of those; and 2^31.
    for boundary in [1usize << 32, 1 << 34, 1 << 35] {
        let arena = Arena::reserve(boundary + 64 * MIB).unwrap();
        arena.begin_at(boundary - 8 * MIB);
        let mut heap = Heap::new(Arc::new(arena));
        let lengths = [100, 5_000, 70_000, 900_000];
        let held: Vec<_> = (0..48)
            .map(|row| {
                let payload = pattern(row, lengths[row as usize % 4]);
                (heap.insert(row, 7, &payload).unwrap(), row, payload)
            })
            .collect();
        let at = (boundary / ADDRESS_UNIT_BYTES) as u64;
        assert!(held.iter().any(|(ptr, ..)| ptr.0 < at));
        assert!(held.iter().any(|(ptr, ..)| ptr.0 > at));
        for (ptr, row, payload) in &held {
            assert_eq!(heap.payload(*ptr), payload);
            assert_eq!((heap.row(*ptr), heap.cold(*ptr)), (*row, 7));
        }
        for (ptr, ..) in held {
            heap.free(ptr);
        }
        assert_eq!(heap.tuples(), 0);
    }
}
