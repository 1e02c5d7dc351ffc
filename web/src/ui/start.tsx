// Starting the page: what its address asks for, the store, and React.

import { createRoot } from "react-dom/client";
import { server } from "../backend/server";
import { App } from "./App";
import { type Asked, Store } from "../store/store";
import { StoreContext } from "./use";

// The token came in the address' fragment, which no server and no referrer sees; it does not stay there.
function asked(): Asked & { token: string | null } {
  const given = new URLSearchParams(location.hash.slice(1));
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  return { token: given.get("token"), scenario: given.get("open"), result: given.get("result"), study: given.get("study") };
}

const store = new Store(server());

// The printed address, or one that was shared, opened in a page that is there already.
window.addEventListener("hashchange", () => {
  const { token, ...what } = asked();
  if (token && store.state.locked !== undefined) void store.start(token, what);
  else if (store.state.session) void store.go(what);
});

// A file that is dropped anywhere is opened. The browser would leave the page for it.
const files = (event: DragEvent) => !event.defaultPrevented && event.dataTransfer?.types.includes("Files");
window.addEventListener("dragover", (event) => files(event) && event.preventDefault());
window.addEventListener("drop", (event) => {
  if (!files(event)) return;
  event.preventDefault();
  const [file] = event.dataTransfer!.files;
  if (file && store.state.session) void store.documents.take(file);
});

createRoot(document.getElementById("root")!).render(
  <StoreContext.Provider value={store}>
    <App />
  </StoreContext.Provider>,
);
const { token, ...what } = asked();
void store.start(token, what);
