import { createRoot } from "react-dom/client";
import "@xyflow/react/dist/base.css";
import "uplot/dist/uPlot.min.css";
import "./ui/styles.css";
import { server } from "./backend/server";
import { App } from "./ui/App";
import { Store } from "./ui/store";
import { StoreContext } from "./ui/use";

// The token came in the address' fragment, which no server and no referrer sees; it does not stay there.
const token = /(?:^#|&)token=([^&]+)/.exec(location.hash)?.[1] ?? null;
if (token) history.replaceState(null, "", location.pathname + location.search);

// The printed address, opened in a page that is there already.
window.addEventListener("hashchange", () => {
  const given = /(?:^#|&)token=([^&]+)/.exec(location.hash)?.[1];
  if (!given) return;
  history.replaceState(null, "", location.pathname + location.search);
  if (store.state.locked !== undefined) void store.start(decodeURIComponent(given));
});

const theme = localStorage.getItem("tcplab-theme");
if (theme) document.documentElement.dataset.theme = theme;

const store = new Store(server());
createRoot(document.getElementById("root")!).render(
  <StoreContext.Provider value={store}>
    <App />
  </StoreContext.Provider>,
);
void store.start(token && decodeURIComponent(token));
