//! Executors kept apart from the agent's keys: as another user, or in a container. Inputs are hostile, and an executor that reads them
//! may become so. The files that it shares with the agent lie in a folder of their own.

use std::fs;
use std::os::unix::fs::{chown, DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{ensure, Context, Result};

use crate::config::{self, Container};

/// The commands that start and end an executor.
pub struct Start {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The command prefix of the shell that ends it: run by the executor's user, which no other may signal, or without privileges.
    pub prefix: Vec<String>,
    /// A shell command that ends processes which a signal to the process group does not reach.
    pub end: Option<String>,
}

/// Whether an executor is kept apart.
pub fn is_apart(settings: &config::Executor) -> bool {
    settings.user.is_some() || settings.container.is_some()
}

/// The command that starts an executor, under a unique name, with its GPU and the shared folder.
pub fn start(settings: &config::Executor, name: &str, gpu: Option<&str>, exchange: &Path) -> Start {
    let plain = settings.command.iter().cloned();
    if let Some(container) = &settings.container {
        let (command, end) = container.start(settings, name, gpu, exchange);
        return Start { command: unprivileged().into_iter().chain(command).collect(), prefix: Vec::new(), end: Some(end) };
    }
    let Some(user) = &settings.user else {
        return Start { command: unprivileged().into_iter().chain(plain).collect(), prefix: Vec::new(), end: None };
    };
    // Drops the privileges with which the agent becomes this user.
    let become_user: Vec<String> =
        ["setpriv", "--reuid", user, "--regid", user, "--init-groups", "--inh-caps=-all", "--ambient-caps=-all"]
            .into_iter()
            .chain(["--no-new-privs", "--"])
            .map(String::from)
            .collect();
    let command = become_user.iter().cloned().chain(plain);
    let Some(cell) = cell(name) else { return Start { command: command.collect(), prefix: become_user, end: None } };
    // 0 is the process that writes it.
    let enters = ["/bin/sh", "-c", "echo 0 >\"$0\" && exec \"$@\""].map(String::from);
    let place = format!("{}/cgroup.procs", cell.display());
    let command = enters.into_iter().chain([place]).chain(command).collect();
    // It can be removed when the last process has ended.
    let end = format!(
        "echo 1 >'{0}/cgroup.kill'; n=0; while ! rmdir '{0}' 2>/dev/null && [ $n -lt 100 ]; do n=$((n + 1)); sleep 0.1; done",
        cell.display()
    );
    Start { command, prefix: unprivileged(), end: Some(end) }
}

/// Makes a cgroup for an executor's processes: they cannot leave it, and the kernel ends them all at once. None where the agent may not make
/// one, as outside its unit, or where the kernel has none of version 2 that does so (Linux 5.14).
fn cell(name: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().map(|line| line.split(' ')).find_map(|mut parts| {
        let place = parts.nth(1)?;
        (parts.next()? == "cgroup2").then_some(place)
    })?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let place = Path::new(mount).join(own).join(name);
    match fs::create_dir(&place) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return None,
        _ => {}
    }
    // A process may be kept from entering a cgroup that could be made.
    let mut enters = Command::new("/bin/sh");
    enters.args(["-c", "echo 0 >\"$0\""]).arg(place.join("cgroup.procs")).stderr(Stdio::null());
    if place.join("cgroup.kill").exists() && enters.status().is_ok_and(|status| status.success()) {
        return Some(place);
    }
    let _ = fs::remove_dir(&place);
    None
}

/// The command prefix that drops the privileges of the agent's unit; empty if it has none.
pub fn unprivileged() -> Vec<String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ambient = status.lines().find_map(|line| line.strip_prefix("CapAmb:")).unwrap_or_default();
    if ambient.trim().chars().all(|digit| digit == '0') {
        return Vec::new();
    }
    ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs", "--"].map(String::from).into()
}

impl Container {
    fn start(&self, settings: &config::Executor, name: &str, gpu: Option<&str>, exchange: &Path) -> (Vec<String>, String) {
        let podman = Path::new(&self.runtime).file_name().is_some_and(|file| file == "podman");
        let mut command: Vec<String> =
            [&self.runtime, "run", "--rm", "--interactive", "--init", "--name", name].map(String::from).into();
        let mut say = |parts: &[&str]| command.extend(parts.iter().map(|part| (*part).to_string()));
        // Its files belong to the agent.
        let own = format!("{}:{}", rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        say(&["--user", &own, "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]);
        say(&["--pids-limit", "4096", "--pull", "never"]);
        // Rootless podman maps the user to another one inside, unless told to keep it; as root it refuses to keep it.
        if podman && !rustix::process::getuid().is_root() {
            say(&["--userns", "keep-id"]);
        }
        if !self.network {
            say(&["--network", "none"]);
        }
        if let Some(memory) = &self.memory {
            say(&["--memory", memory, "--memory-swap", memory]);
        }
        if let Some(gpu) = gpu {
            let device = if podman { format!("nvidia.com/gpu={gpu}") } else { format!("device={gpu}") };
            say(&[if podman { "--device" } else { "--gpus" }, &device]);
        }
        let bind = |place: &Path, how: &str| format!("type=bind,source={0},target={0}{how}", place.display());
        say(&["--mount", &bind(exchange, "")]);
        let cache = settings.environment.get("HF_HOME").map(PathBuf::from);
        for place in self.read.iter().chain(&cache) {
            say(&["--mount", &bind(place, ",readonly")]);
        }
        // Each with the value that the runtime has itself: other users can read its command line.
        for key in settings.environment.keys() {
            say(&["--env", key]);
        }
        if let Some(place) = &settings.directory {
            say(&["--workdir", &place.display().to_string()]);
        }
        say(&[&self.image]);
        command.extend(settings.command.iter().cloned());
        // A container outlives the process that started it.
        (command, format!("'{}' rm --force '{name}' >/dev/null 2>&1", self.runtime))
    }
}

/// Creates the folder shared with an executor, which only the agent and the executor's user can enter.
///
/// # Errors
/// If it cannot be created, or given to that user's group.
pub fn exchange(settings: &config::Executor, node: &str) -> Result<PathBuf> {
    let place = match &settings.exchange {
        Some(place) => place.clone(),
        None => {
            let place = std::env::temp_dir().join(format!("muster-agent-{}", rustix::process::getuid().as_raw()));
            own(&place)?;
            place
        }
    };
    // Not shared with another process of the same configuration, such as `doctor`.
    let place = place.join(format!("{node}-{}", std::process::id()));
    let made = || {
        fs::create_dir_all(&place)?;
        if let Some(user) = &settings.user {
            // Only root, or a member of both groups, may change the group.
            chown(&place, None, Some(group(user)?))?;
            // The folder above only needs to be passable.
            if let Some(above) = place.parent() {
                fs::set_permissions(above, fs::Permissions::from_mode(0o711))?;
            }
            fs::set_permissions(&place, fs::Permissions::from_mode(0o770))
        } else {
            fs::set_permissions(&place, fs::Permissions::from_mode(0o700))
        }
    };
    made().with_context(|| format!("{} cannot be made for the executor's user", place.display()))?;
    Ok(place)
}

/// Creates a folder where anybody may, or finds that it is the agent's own: whoever owns it could put a link in the place of what is in it.
fn own(place: &Path) -> Result<()> {
    let said = || format!("{}, the folder for executors", place.display());
    match fs::DirBuilder::new().mode(0o711).create(place) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error).with_context(said),
        _ => {}
    }
    let there = fs::symlink_metadata(place).with_context(said)?;
    let ours = there.is_dir() && there.uid() == rustix::process::getuid().as_raw();
    ensure!(ours, "{} is not a folder of the agent's user: remove it, or set `exchange`", place.display());
    Ok(())
}

/// The number of a group, as /etc/group has it.
fn group(name: &str) -> std::io::Result<u32> {
    let groups = fs::read_to_string("/etc/group")?;
    let lines = groups.lines().filter_map(|line| {
        let mut parts = line.split(':');
        Some((parts.next()?, parts.nth(1)?))
    });
    let found = lines.into_iter().find(|(group, _)| *group == name).and_then(|(_, number)| number.parse().ok());
    found.ok_or_else(|| std::io::Error::new(std::io::ErrorKind::NotFound, format!("there is no group {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(more: &str) -> config::Executor {
        toml::from_str(&format!("command = ['python3', 'executor.py']\n{more}")).unwrap()
    }

    #[test]
    fn a_folder_for_executors_that_somebody_else_made_is_not_taken() {
        let place = tempfile::tempdir().unwrap();
        let (ours, link) = (place.path().join("ours"), place.path().join("link"));
        own(&ours).unwrap();
        own(&ours).unwrap();
        std::os::unix::fs::symlink(&ours, &link).unwrap();
        assert!(own(&link).unwrap_err().to_string().contains("is not a folder of the agent's user"));
        // Only root can give a folder away.
        if rustix::process::getuid().is_root() {
            chown(&ours, Some(1), None).unwrap();
            assert!(own(&ours).is_err());
        }
    }

    #[test]
    fn a_container_has_one_card_no_network_and_nothing_to_write_but_the_exchange() {
        let given = settings(
            "environment = { HF_HOME = '/cache' }\ncontainer = { runtime = '/usr/bin/docker', image = 'ours', memory = '64g', read = ['/w'] }",
        );
        let Start { command, end, prefix } = start(&given, "muster-gpu0-1", Some("GPU-1"), Path::new("/exchange"));
        let line = command.join(" ");
        assert!(line.starts_with("/usr/bin/docker run --rm --interactive --init --name muster-gpu0-1 --user "), "{line}");
        for part in [
            "--read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges",
            "--network none",
            "--memory 64g --memory-swap 64g",
            "--gpus device=GPU-1",
            "--mount type=bind,source=/exchange,target=/exchange",
            "source=/w,target=/w,readonly",
            "source=/cache,target=/cache,readonly",
            "--env HF_HOME ",
            "ours python3 executor.py",
        ] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
        assert_eq!(end.unwrap(), "'/usr/bin/docker' rm --force 'muster-gpu0-1' >/dev/null 2>&1");
        assert!(prefix.is_empty());
        let given = settings("container = { image = 'ours', network = true }");
        let line = start(&given, "x", Some("GPU-1"), Path::new("/e")).command.join(" ");
        assert!(line.contains("--device nvidia.com/gpu=GPU-1"), "{line}");
        assert_eq!(line.contains("--userns keep-id"), !rustix::process::getuid().is_root(), "{line}");
        assert!(!line.contains("--network") && !line.contains("--memory"), "{line}");
    }
}
