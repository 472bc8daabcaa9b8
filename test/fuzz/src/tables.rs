//! Bytes as CSV files of requests and of machines.

use crate::bytes::Bytes;
use muster_sim::trace::{fleet, requests, size, Sizes};

/// Rows that are read of a file.
const ROWS: usize = 200;

/// Panics where something is read that cannot be.
pub fn run(data: &[u8]) {
    let mut b = Bytes(data);
    match b.below(3) {
        0 => {
            let Ok(read) = requests("requests.csv", b.0, ROWS) else { return };
            assert!(!read.is_empty() && read.len() <= ROWS);
            assert!(read.windows(2).all(|pair| pair[0].at <= pair[1].at), "in order of time");
            assert_eq!(read[0].at, 0, "after the first one");
            for request in read {
                assert!(request.units > 0 && (1..=8).contains(&request.models.len()) && [8, 16, 24].contains(&request.vram));
                assert!(!request.application.is_empty() && request.models.iter().all(|model| !model.is_empty()));
            }
        }
        1 => {
            let sizes = Sizes::from_iter(size("RTX 9090=12").ok());
            let Ok((read, _)) = fleet("machines.csv", b.0, &sizes) else { return };
            let mut again = String::from("model,vram\n");
            for gpu in &read {
                assert!((1..=960).contains(&gpu.vram) && gpu.name.len() <= 64, "{gpu:?}");
                again += &format!("\"{}\",{}\n", gpu.name.replace('"', "\"\""), gpu.vram);
            }
            // Machines that were read and written again are read as the same.
            let (second, _) = fleet("again.csv", again.as_bytes(), &Sizes::new()).expect("what was read");
            assert_eq!(read, second);
        }
        _ => {
            let Ok(text) = std::str::from_utf8(b.0) else { return };
            if let Ok((key, gib)) = size(text) {
                assert!(!key.is_empty() && (1..=960).contains(&gib));
            }
        }
    }
}
