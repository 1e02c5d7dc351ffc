// A scenario to hand to someone else: as a file, or as a link for those who have the token of this server.

import { Icon } from "./icons";
import { Menu } from "./Menu";
import type { Store } from "../store/store";
import { use, useStore } from "./use";

export function Share() {
  const store = useStore();
  const path = use((state) => state.path);
  const version = use((state) => state.version);
  return (
    <Menu className="share" label="Share" title="Share this scenario" button={<Icon name="download" />}>
      {(close) => (
        <>
          <button onClick={() => (download(path, store.state.text), close())}>Download scenario</button>
          <button disabled={version === null} onClick={() => (void copyLink(store, "open", path), close())}>
            Copy link
            <small>{version === null ? "Save it first" : "Opens for those who have this server's token"}</small>
          </button>
        </>
      )}
    </Menu>
  );
}

/** Put the address of a scenario, result or study of this server on the clipboard. */
export async function copyLink(store: Store, what: "open" | "result" | "study", path: string): Promise<void> {
  const link = new URL(`#${what}=${encodeURIComponent(path)}`, document.baseURI).href;
  try {
    await navigator.clipboard.writeText(link);
    store.notice("Link copied to the clipboard.");
  } catch {
    // Browsers give the clipboard to loopback and HTTPS only.
    store.notice(link);
  }
}

function download(path: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = path.split("/").pop()!;
  link.click();
  URL.revokeObjectURL(address);
}
