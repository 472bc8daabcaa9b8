//! The GPU: its identity, and whether it still answers. NVIDIA's library is loaded when needed; without it the configuration
//! describes the GPU.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{anyhow, bail, Context, Result};
use nvml_wrapper::{Device, Nvml};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::config;

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its name, by NVIDIA or the configuration.
    pub name: String,
    /// Its memory in GiB, rounded up.
    pub vram: u16,
    /// Its UUID, where NVIDIA's library was asked.
    pub uuid: Option<String>,
}

/// How it is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vitals {
    /// Degrees Celsius.
    pub temperature: Option<u32>,
    /// Utilisation in percent, over the driver's last sample period.
    pub busy: Option<u32>,
    /// Bytes of memory in use.
    pub used: u64,
    /// Bytes of memory that it has.
    pub total: u64,
}

/// A card of this machine, as `init` finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub gpu: Gpu,
    /// Whether it is divided (MIG): its parts are described by hand.
    pub divided: bool,
}

/// The longest time that NVIDIA's library may take for an answer. Without its persistence mode it starts every card first.
pub const LONGEST: Duration = Duration::from_secs(30);
/// Most questions without an answer: more than all nodes of a machine ask at once, and few enough threads.
const OPEN: usize = 256;

/// Questions without an answer yet.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// One of them, until it is dropped.
struct Asked;

impl Asked {
    /// None if there are too many.
    fn new() -> Option<Self> {
        let asked = (ASKED.fetch_add(1, Relaxed), Self);
        (asked.0 < OPEN).then_some(asked.1)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        ASKED.fetch_sub(1, Relaxed);
    }
}

/// Asks NVIDIA's library in a thread of its own: where a card has failed, the driver may never answer. Nothing waits for that thread, not
/// even the end of the process.
pub fn ask<T: Send + 'static>(question: impl FnOnce() -> Result<T> + Send + 'static) -> oneshot::Receiver<Result<T>> {
    let (tell, told) = oneshot::channel();
    if let Some(asked) = Asked::new() {
        // Without a thread nothing is told, as by a library that does not answer.
        let _ = std::thread::Builder::new().name("gpu".into()).spawn(move || {
            let answer = question();
            drop(asked);
            drop(tell.send(answer));
        });
    }
    told
}

/// The error of a library that takes too long.
pub fn silent() -> anyhow::Error {
    anyhow!("NVIDIA's library does not answer")
}

/// Asks NVIDIA's library, and waits no longer than [`LONGEST`].
///
/// # Errors
/// The question's own, or that there is no answer.
pub async fn answered<T: Send + 'static>(question: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match timeout(LONGEST, ask(question)).await {
        Ok(Ok(answer)) => answer,
        _ => Err(silent()),
    }
}

/// All cards that NVIDIA's library knows.
///
/// # Errors
/// If there is no library, or one of the cards does not answer.
pub fn all() -> Result<Vec<Found>> {
    let nvml = open().context("no NVIDIA library: install the driver, or write `gpu_name` and `vram` by hand")?;
    let count = nvml.device_count().context("NVIDIA's library does not say how many cards there are")?;
    (0..count)
        .map(|number| {
            let device = nvml.device_by_index(number).with_context(|| format!("GPU {number} does not answer"))?;
            let gpu = describe(&device)?;
            Ok(Found { gpu, divided: is_divided(&device) })
        })
        .collect()
}

/// NVIDIA's library; its error says once which file is missing, though each of its causes repeats that.
fn open() -> Result<Nvml> {
    Nvml::init().map_err(|error| anyhow!("{error}"))
}

fn describe(device: &Device<'_>) -> Result<Gpu> {
    let name = device.name().context("the GPU does not say its name")?;
    let memory = device.memory_info().context("the GPU does not say its memory: set `gpu_name` and `vram`")?;
    Ok(Gpu { name, vram: gib(memory.total), uuid: Some(device.uuid()?) })
}

fn is_divided(device: &Device<'_>) -> bool {
    device.mig_is_mig_device_handle().unwrap_or(false) || device.mig_mode().is_ok_and(|mode| mode.current == 1)
}

/// The GPU of a node.
///
/// # Errors
/// If neither the library nor the configuration tells of one, or the library does not answer.
pub async fn find(node: &config::Node) -> Result<Gpu> {
    let node = node.clone();
    answered(move || find_now(&node)).await
}

fn find_now(node: &config::Node) -> Result<Gpu> {
    if let (Some(name), Some(vram)) = (&node.gpu_name, node.vram) {
        return Ok(Gpu { name: name.clone(), vram, uuid: node.gpu.clone().filter(|gpu| gpu.parse::<u32>().is_err()) });
    }
    let nvml = open().context("no NVIDIA library: set `gpu_name` and `vram`, or install the driver")?;
    let device = device(&nvml, node.gpu.as_deref())?;
    let gpu = describe(&device)?;
    if is_divided(&device) {
        bail!("{} is divided (MIG): set `gpu` to the part's UUID, and `gpu_name` and `vram`", gpu.name);
    }
    Ok(gpu)
}

/// The reason why a card is lost; `None` while it answers, or without the library.
pub async fn lost(uuid: &str) -> Option<String> {
    let gpu = Gpu { name: String::new(), vram: 0, uuid: Some(uuid.into()) };
    answered(move || look(&gpu)).await.err().map(|error| format!("{error:#}"))
}

/// Checks a GPU; an error means that it is lost. Nothing is known of one that the configuration describes.
pub fn look(gpu: &Gpu) -> Result<Option<Vitals>> {
    let Some(uuid) = &gpu.uuid else { return Ok(None) };
    let nvml = match open() {
        Ok(nvml) => nvml,
        // Parts of GPUs and other makers' GPUs appear on machines without the library, too.
        Err(_) if !uuid.starts_with("GPU-") => return Ok(None),
        Err(error) => return Err(error).context("NVIDIA's library is gone"),
    };
    let device = nvml.device_by_uuid(uuid.as_str()).with_context(|| format!("GPU {uuid} is gone"))?;
    let memory = device.memory_info().with_context(|| format!("GPU {uuid} does not answer"))?;
    let temperature = device.temperature(nvml_wrapper::enum_wrappers::device::TemperatureSensor::Gpu).ok();
    let busy = device.utilization_rates().ok().map(|rates| rates.gpu);
    Ok(Some(Vitals { temperature, busy, used: memory.used, total: memory.total }))
}

fn device<'a>(nvml: &'a Nvml, which: Option<&str>) -> Result<Device<'a>> {
    let which = which.unwrap_or("0");
    let device = match which.parse::<u32>() {
        Ok(number) => nvml.device_by_index(number),
        Err(_) => nvml.device_by_uuid(which),
    };
    device.with_context(|| format!("there is no GPU {which}"))
}

/// GiB of a number of bytes. Drivers report a little less than the nominal size, so rounds up by way of whole MiB.
fn gib(bytes: u64) -> u16 {
    (bytes >> 20).div_ceil(1 << 10).min(u16::MAX.into()) as u16
}

/// The name that a node registers: the GPU's, and the stack that determines its answers.
pub fn registered(name: &str, stack: Option<&str>) -> String {
    match stack {
        Some(stack) => format!("{name}+{stack}"),
        None => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_rounded_up_to_what_is_sold() {
        // RTX 4090: 24,564 MiB; A100: 81,920 MiB; GTX 1060: 6,144 MiB and 3,019 MiB.
        assert_eq!([24_564u64 << 20, 81_920 << 20, 6_144 << 20, 3_019 << 20, 0].map(gib), [24, 80, 6, 3, 0]);
    }

    #[tokio::test]
    async fn a_machine_without_a_gpu_is_described() {
        let node = |more: &str| -> config::Node {
            toml::from_str(&format!("name = 'n'\nkey_env = 'K'\n{more}\n[executor]\ncommand = ['true']")).unwrap()
        };
        let described = find(&node("gpu_name = 'Apple M4 Max'\nvram = 128")).await.unwrap();
        assert_eq!(described, Gpu { name: "Apple M4 Max".into(), vram: 128, uuid: None });
        assert_eq!(look(&described).unwrap(), None);
        let part = find(&node("gpu = 'MIG-1'\ngpu_name = 'NVIDIA A100 MIG 3g.40gb'\nvram = 40")).await.unwrap();
        assert_eq!(part.uuid.as_deref(), Some("MIG-1"));
        assert_eq!(registered(&part.name, Some("0a1b2c3d")), "NVIDIA A100 MIG 3g.40gb+0a1b2c3d");
    }
}
