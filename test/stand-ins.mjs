// A project of stand-ins, in a folder of its own, in which the committed `script/test` runs: for the tests of that script.
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after } from "node:test";

/** `executables` are the tests as cargo would build them: package and name, which is also the program's. Removed when the tests have ended. */
export function project(executables) {
  const folder = mkdtempSync(join(tmpdir(), "muster-script-"));
  after(() => rmSync(folder, { recursive: true }));
  /** Writes a program in bash. */
  const write = (path, text) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), `#!/usr/bin/env bash\n${text}\n`, { mode: 0o755 });
  };
  write("script/env", `set -euo pipefail\ncd "${folder}"\nPATH="$PWD/bin:$PATH"\nprepare() { :; }\nbuild_tools() { :; }\nhost=()\nprogress() { cat built; }\nrecord() { echo "$*" >>recorded; }`);
  write("script/build", "");
  copyFileSync(new URL("../script/test", import.meta.url), join(folder, "script/test"));
  const built = executables.map(([name, target]) =>
    JSON.stringify({ reason: "compiler-artifact", profile: { test: true }, executable: join(folder, target), manifest_path: join(folder, "Cargo.toml"), package_id: `path+file://${folder}#${name}@0.1.0`, target: { name: target } }),
  );
  writeFileSync(join(folder, "built"), `${built.join("\n")}\n`);
  return { folder, write };
}
