/** The account of the connected wallet, if any: the rest of the page needs no more of wallets. */
import { useEffect, useReducer } from "preact/hooks";

let account: string | undefined;
const listeners = new Set<() => void>();
export function setConnected(next: string | undefined): void {
  account = next?.toLowerCase();
  for (const listener of listeners) listener();
}

export function useConnected(): string | undefined {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const listener = () => redraw(undefined as never);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return account;
}
