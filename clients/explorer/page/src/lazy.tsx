/** Parts of the page that are loaded when they are first wanted. */
import type { ComponentType } from "preact";
import { useEffect, useReducer } from "preact/hooks";
import { Loading } from "./parts";

export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let [found, failed]: [ComponentType<P> | undefined, string | undefined] = [undefined, undefined];
  return function Lazy(properties: P) {
    const [, redraw] = useReducer((count: number) => count + 1, 0);
    useEffect(() => {
      if (found) return;
      void load()
        .then(
          (view) => (found = view),
          (error: unknown) => (failed = `This part of the page could not be loaded: ${(error as Error).message}. Load the page anew.`),
        )
        .then(() => redraw(undefined as never));
    }, []);
    const View = found;
    return View ? <View {...properties} /> : failed ? <p class="notice bad" role="alert">{failed}</p> : <Loading />;
  };
}
