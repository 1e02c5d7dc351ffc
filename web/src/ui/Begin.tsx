// An empty canvas: what to do first.

import { TEMPLATES } from "../core/templates";
import { useStore } from "./use";

export function Begin({ begun }: { begun: () => void }) {
  const store = useStore();
  return (
    <div className="begin">
      <h2>Draw a network</h2>
      <p>
        Add hosts, routers and switches with the buttons above, or click here and press <kbd>H</kbd>, <kbd>R</kbd> and <kbd>S</kbd>. Drag
        from the edge of one node to another to link them. Then choose Flow and drag from the sender to the receiver.
      </p>
      <p className="keys">
        By keys: <kbd>Enter</kbd> selects a node, <kbd>Shift</kbd>+<kbd>Enter</kbd> one more; <kbd>L</kbd> links the two, <kbd>F</kbd> sends a flow.
      </p>
      <p>Or start from a template:</p>
      <div className="starts">
        {TEMPLATES.map((template) => (
          <button
            key={template.name}
            title={template.about}
            onClick={() => {
              store.documents.edit(template.text, template.places ?? {});
              begun();
            }}
          >
            {template.name}
          </button>
        ))}
      </div>
    </div>
  );
}
