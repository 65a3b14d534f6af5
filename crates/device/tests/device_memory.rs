//! Memory that stands for devices is counted apart from the process's. Alone in its process: other
//! tests have such devices, too.

use thermocline_device::{Device, MemoryDevice, OpenMode, device_bytes, resident_bytes};

#[test]
fn what_stands_for_a_device_is_no_memory_of_the_process() {
    let device = MemoryDevice::new();
    let file = device.open("file", OpenMode::CreateNew).unwrap();
    let sixty: u64 = 60 << 20;
    assert_eq!(device_bytes(), 0);
    file.write_at(&vec![1; sixty as usize], 0).unwrap();
    assert!(device_bytes() >= sixty);
    let held = resident_bytes().expect("this kernel says");
    file.punch_hole(0, sixty).unwrap();
    assert_eq!(device_bytes(), 0);
    drop((file, device));
    let after = resident_bytes().expect("this kernel says");
    assert!(after.abs_diff(held) < 20 << 20, "{held} and {after}");
}
