//! Bytes as lines of an executor, by the agent's own reader.

use crate::said::{hear, Said};

/// Panics where the agent does, or would not stop.
pub fn run(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut stdout = data;
    let mut left = data.len();
    // After a line that is none it listens no more.
    while let Ok(said) = runtime.block_on(hear(&mut stdout)) {
        assert!(stdout.len() < left, "it goes on");
        let line = &data[data.len() - left..data.len() - stdout.len()];
        assert!(line.ends_with(b"\n"));
        left = stdout.len();
        let json: serde_json::Value = serde_json::from_slice(line).expect("JSON");
        match said {
            Said::Ready(ready) => assert_eq!(json["ready"]["name"], ready.name),
            Said::Piece { id, text } => {
                assert_eq!(json["piece"]["id"], id);
                assert_eq!(json["piece"]["text"], text);
            }
            Said::Done { id } => assert_eq!(json["done"]["id"], id),
            Said::Failed { id, reason, .. } => {
                assert_eq!(json["failed"]["id"], id);
                assert_eq!(json["failed"]["reason"], reason);
            }
        }
    }
}
