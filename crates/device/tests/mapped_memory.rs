//! Pages of files that are looked at are counted apart from the process's memory. Alone in its
//! process: other tests take memory, too.

use thermocline_device::{AlignedBuffer, Device, FileDevice, IoEngine, OpenMode, resident_bytes};

const BYTES: usize = 64 << 20;

#[test]
fn what_is_looked_at_is_not_the_processs() {
    let directory = tempfile::tempdir().expect("a directory");
    let device = FileDevice::open(directory.path(), IoEngine::Threads).expect("a device");
    let file = device.open("file", OpenMode::CreateNew).expect("a file");
    let piece = AlignedBuffer::new_zeroed(1 << 20);
    for at in (0..BYTES).step_by(piece.len()) {
        file.write_at(&piece, at as u64).expect("it is written");
    }
    drop(piece);
    let before = resident_bytes().expect("this kernel says");
    for at in (0..BYTES).step_by(4096) {
        let mut first = None;
        let see = &mut |there: &[u8]| {
            first = there.first().copied();
            1
        };
        file.look(at as u64, 16, see).expect("it is seen");
        assert_eq!(first, Some(0));
    }
    let after = resident_bytes().expect("this kernel says");
    assert!(after < before + BYTES as u64 / 8, "{before} to {after}");
}
