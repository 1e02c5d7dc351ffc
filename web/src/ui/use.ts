// The store in React.

import { createContext, useContext, useSyncExternalStore } from "react";
import type { State } from "../store/state";
import type { Store } from "../store/store";

export const StoreContext = createContext<Store>(undefined as unknown as Store);

export const useStore = () => useContext(StoreContext);

/** A part of the state; the component is drawn again when that part is another one. */
export function use<T>(part: (state: State) => T): T {
  const store = useStore();
  return useSyncExternalStore(store.subscribe, () => part(store.state));
}
