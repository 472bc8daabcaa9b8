/** Objects under a URL, by GET and PUT: a web server, a bucket with HTTP access, or signed URLs. */
import { type Store, type StoredObject, entryName, objectName } from "./store.js";

/** Options of requests to a store over HTTP. */
export interface HttpStoreOptions {
  /** Headers of every request, for instance an authorisation. */
  headers?: Record<string, string> | undefined;
  /** Whether redirections are followed when reading, as `fetch` takes it; they are if left out. */
  redirect?: "follow" | "error" | undefined;
  /** The URL of an object, in place of `url/<name>`: for instance one that a server signed for this request alone. */
  sign?: ((name: string, method: "GET" | "PUT") => string | Promise<string>) | undefined;
}

/**
 * The URL of an object. A query of the store's own, such as a signature for all of it, stays behind the name. A name and a password are left out: `fetch`
 * takes none there, and its message would show them. They belong into {@link headersOf}.
 */
export function objectUrl(url: string, name: string): string {
  const { origin, pathname, search } = new URL(url);
  return `${origin}${pathname.replace(/\/$/, "")}/${name}${search}`;
}

/** Headers of a request, and the login of the store's URL if it has one. */
export function headersOf(url: string, headers?: Record<string, string>): Record<string, string> {
  const { username, password } = new URL(url);
  return { ...((username || password) && { authorization: `Basic ${btoa(decodeURIComponent(`${username}:${password}`))}` }), ...headers };
}

/** A server's answer, or null if it has no such object. */
export async function ask(url: string, init: RequestInit): Promise<Response | null> {
  const response = await fetch(url, init);
  if (response.ok) return response;
  // Otherwise the connection stays open.
  await response.body?.cancel();
  if (response.status === 404 || response.status === 410) return null;
  throw new Error(`HTTP ${response.status}`);
}

/** Objects under a URL, each at its name. */
export function httpStore(url: string, { headers, redirect, sign }: HttpStoreOptions = {}): Store {
  const at = async (object: StoredObject, method: "GET" | "PUT") => {
    const name = objectName(object);
    return sign ? sign(name, method) : objectUrl(url, name);
  };
  return {
    name: entryName(url),
    get: async (object, { signal }) => (await ask(await at(object, "GET"), { headers: headersOf(url, headers), redirect, signal } as RequestInit))?.body ?? null,
    put: async (object, bytes, { signal }) => {
      const answer = await ask(await at(object, "PUT"), { method: "PUT", headers: headersOf(url, headers), body: bytes as BodyInit, signal });
      if (!answer) throw new Error("HTTP 404");
      await answer.body?.cancel();
    },
  };
}
