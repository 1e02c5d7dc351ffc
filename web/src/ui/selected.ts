// Removing what is selected.

import { removeAt, removeNode } from "../core/changes";
import type { Store } from "../store/store";

export function removeSelected(store: Store): void {
  let { text } = store.state;
  const { drawing } = store.state;
  // The text names no node or link that is made from `topology`.
  const selection = store.state.selection.filter(({ kind }) => kind === "flow" || !drawing.generated);
  // From the last to the first, so that the places of the others stay.
  const paths = selection
    .filter(({ kind }) => kind !== "node")
    .map(({ kind, name }) => (drawing[`${kind}s`] as { name: string; path: (string | number)[] }[]).find((one) => one.name === name)!.path)
    .sort((a, b) => Number(b[b.length - 1]) - Number(a[a.length - 1]));
  for (const path of paths) if (path[1] !== "path") text = removeAt(text, path);
  for (const { kind, name } of selection) if (kind === "node") text = removeNode(text, name);
  store.documents.edit(text);
  store.set({ selection: [] });
}
