/** For Node.js: a directory as a store. */
import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Store, objectName } from "./stores.js";

/** Objects as files of a directory, which the first put creates. */
export function directoryStore(directory: string): Store {
  return {
    name: directory,
    get: (object, { signal }) =>
      readFile(join(directory, objectName(object)), { signal }).then(
        (bytes) => new Uint8Array(bytes),
        (error: NodeJS.ErrnoException) => {
          if (error.code === "ENOENT") return null;
          throw error;
        },
      ),
    put: async (object, bytes, { signal }) => {
      const name = objectName(object);
      await mkdir(directory, { recursive: true });
      // Never half a file under its final name.
      const part = join(directory, `.${name}.${randomUUID()}`);
      try {
        await writeFile(part, bytes, { signal });
        await rename(part, join(directory, name));
      } catch (error) {
        await rm(part, { force: true });
        throw error;
      }
    },
  };
}
