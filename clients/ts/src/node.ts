/** What needs Node.js: a directory as a store. */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { digestOf } from "./names.js";
import { type Store, type StoredObject, objectName } from "./results.js";

/** A store that can be written to. */
export interface WritableStore extends Store {
  /** Keeps bytes under their digest, or a sealed result under its name. Returns the name. */
  put(bytes: Uint8Array, sealed?: string): Promise<string>;
}

/** Objects as files of a directory, which is made when the first is put there. */
export function directoryStore(directory: string): WritableStore {
  return {
    name: directory,
    get: (object: StoredObject) =>
      readFile(join(directory, objectName(object))).then(
        (bytes) => new Uint8Array(bytes),
        (error: NodeJS.ErrnoException) => {
          if (error.code === "ENOENT") return null;
          throw error;
        },
      ),
    async put(bytes, sealed) {
      const name = sealed ?? objectName({ digest: digestOf(bytes) });
      await mkdir(directory, { recursive: true });
      // Never half a file under a name that says what is in it.
      const part = join(directory, `.${name}.${process.pid}`);
      await writeFile(part, bytes);
      await rename(part, join(directory, name));
      return name;
    },
  };
}
