// A node's addresses, routes, neighbours, and what its FRR knows.

import { useCallback, useEffect, useState } from "react";
import { message } from "../../store/page";
import { useStore } from "../use";

export function Tables({ lab, node }: { lab: string; node: string }) {
  const store = useStore();
  const [text, setText] = useState("Reading…");
  const read = useCallback(() => {
    store.backend.tables(lab, node).then(
      (found) => setText(found.text),
      (problem: unknown) => setText(message(problem)),
    );
  }, [store, lab, node]);
  useEffect(read, [read]);
  return (
    <div className="capture">
      <div className="row">
        <button onClick={read}>Refresh</button>
      </div>
      <pre tabIndex={0} aria-label={`Routes of ${node}`}>
        {text}
      </pre>
    </div>
  );
}
