// The scenario's text: CodeMirror over the store's text, with mistakes at their lines and keys offered.

import { autocompletion, type CompletionContext, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Annotation, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { complete } from "../core/complete";
import { type Checked, messageOf, type Place } from "../core/problems";
import { unbroken } from "../core/quantity";
import { placeOf } from "../core/text";
import type { Store } from "../store/store";
import { use, useStore } from "./use";

const fromStore = Annotation.define<boolean>();

export default function Editor() {
  const store = useStore();
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>();
  const text = use((state) => state.text);
  const checked = use((state) => state.checked);
  const selection = use((state) => state.selection);

  useEffect(() => {
    const made = new EditorView({ parent: host.current!, state: EditorState.create({ doc: store.state.text, extensions: extensions(store) }) });
    view.current = made;
    return () => made.destroy();
  }, [store]);

  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const now = editor.state.doc.toString();
    // The newest, which may have been typed since this was drawn.
    const { text: newest } = store.state;
    if (now === newest) return;
    editor.dispatch({ changes: difference(now, newest), annotations: fromStore.of(true) });
  }, [text, store]);

  useEffect(() => {
    const editor = view.current;
    if (editor) editor.dispatch(setDiagnostics(editor.state, diagnostics(editor.state, checked)));
  }, [checked]);

  // The selection on the canvas is brought into view here.
  useEffect(() => {
    const editor = view.current;
    const one = selection.length === 1 ? selection[0]! : undefined;
    if (!editor || !one || editor.hasFocus) return;
    const drawn = (store.state.drawing[`${one.kind}s`] as { name: string; path: (string | number)[] }[]).find((other) => other.name === one.name);
    const place = drawn && placeOf(editor.state.doc.toString(), drawn.path);
    if (!place || place.line > editor.state.doc.lines) return;
    const line = editor.state.doc.line(place.line);
    editor.dispatch({ selection: { anchor: line.from }, effects: EditorView.scrollIntoView(line.from, { y: "center" }) });
  }, [selection, store]);

  const errors = checked?.errors ?? [];
  const problems = checked?.problems ?? [];
  return (
    <section className="editor" aria-label="Scenario as YAML">
      <div className="code" ref={host} />
      {(errors.length > 0 || problems.length > 0 || (checked?.warnings.length ?? 0) > 0) && (
        <ul className="mistakes" aria-label="Errors and warnings" aria-live="polite">
          {errors.map((error, index) => (
            <li key={index} className="error">
              <button className="plain" onClick={() => goTo(view.current, error.line, error.column)}>
                {error.line > 0 && <b>line {error.line}</b>} {unbroken(messageOf(error))}
              </button>
            </li>
          ))}
          {problems.map((problem, index) => (
            <li key={`p${index}`} className={problem.fatal ? "error" : "warning"}>
              <button className="plain" onClick={() => goTo(view.current, problem.line, problem.column)}>
                {problem.line > 0 && <b>line {problem.line}</b>} {problem.where && `${problem.where}: `}
                {unbroken(problem.message)}
                {problem.hint && <span className="hint"> Fix: {unbroken(problem.hint)}</span>}
              </button>
            </li>
          ))}
          {checked?.warnings.map((warning) => (
            <li key={warning} className="warning">
              {unbroken(warning)}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function extensions(store: Store) {
  const nonce = document.querySelector<HTMLMetaElement>("meta[name=nonce]")?.content ?? "";
  return [
    EditorView.cspNonce.of(nonce),
    lineNumbers(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    drawSelection(),
    highlightSelectionMatches(),
    indentUnit.of("  "),
    yaml(),
    syntaxHighlighting(STYLE),
    lintGutter(),
    autocompletion({ override: [(context: CompletionContext) => offered(store, context)] }),
    // Undo and redo are the page's, since they go over the drawing as well.
    keymap.of([indentWithTab, ...completionKeymap, ...defaultKeymap, ...searchKeymap, ...lintKeymap]),
    EditorView.contentAttributes.of({
      "aria-label": "Scenario as YAML",
      "aria-description": "Tab indents once you have edited; Escape, then Tab, leaves the text.",
      spellcheck: "false",
      tabindex: "0",
    }),
    passing(),
    EditorView.updateListener.of((update) => {
      if (!update.docChanged || update.transactions.some((one) => one.annotation(fromStore))) return;
      update.view.setTabFocusMode(false);
      store.documents.edit(update.state.doc.toString(), undefined, "type");
    }),
    EditorView.theme({ "&": { height: "100%" }, ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" } }),
  ];
}

/** Tab leaves the text for someone who came by it, and indents for someone who pointed at the text or edited it. */
function passing() {
  let pointed = false;
  return EditorView.domEventHandlers({
    pointerdown: (_, view) => {
      pointed = true;
      view.setTabFocusMode(false);
    },
    focus: (_, view) => {
      view.setTabFocusMode(!pointed);
      pointed = false;
    },
    blur: () => {
      pointed = false;
    },
  });
}

const STYLE = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-key)" },
  { tag: [tags.string, tags.content], color: "var(--code-text)" },
  { tag: [tags.number, tags.bool], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.bracket], color: "var(--muted)" },
]);

function offered(store: Store, context: CompletionContext) {
  const { schema, session } = store.state;
  if (!schema) return null;
  const found = complete(context.state.doc.toString(), context.pos, schema, session?.controls ?? []);
  if (!found || (!context.explicit && found.typed === "")) return null;
  return {
    from: context.pos - found.typed.length,
    options: found.options.map((option) => ({ label: option.label, apply: option.apply, info: option.about || undefined, type: option.kind })),
    validFor: /^[\w.-]*$/,
  };
}

/** The smallest change from one text to another, so that the cursor and what is folded stay. */
function difference(from: string, to: string) {
  let start = 0;
  while (start < from.length && start < to.length && from[start] === to[start]) start++;
  let end = 0;
  while (end < from.length - start && end < to.length - start && from[from.length - 1 - end] === to[to.length - 1 - end]) end++;
  return { from: start, to: from.length - end, insert: to.slice(start, to.length - end) };
}

function diagnostics(state: EditorState, checked: Checked | undefined): Diagnostic[] {
  const inText = ({ line }: Place) => line > 0 && line <= state.doc.lines;
  const errors = (checked?.errors ?? []).filter(inText).map((error): Diagnostic => {
    const fix = error.suggestion && !/(is missing|has no value|is empty)$/.test(error.message) && error.value;
    return {
      ...rangeOf(state, error),
      severity: "error",
      message: messageOf(error),
      actions: fix
        ? [{ name: `Use ${error.suggestion}`, apply: (editor, from, to) => editor.dispatch({ changes: { from, to, insert: error.suggestion } }) }]
        : [],
    };
  });
  const problems = (checked?.problems ?? []).filter(inText).map((problem): Diagnostic => ({
    ...rangeOf(state, problem),
    severity: problem.fatal ? "error" : "warning",
    message: problem.message + (problem.hint && `; fix: ${problem.hint}`),
  }));
  return [...errors, ...problems].sort((a, b) => a.from - b.from);
}

function rangeOf(state: EditorState, place: Place): { from: number; to: number } {
  const line = state.doc.line(place.line);
  const from = Math.min(line.from + Math.max(0, place.column - 1), line.to);
  return { from, to: Math.max(from, Math.min(from + Math.max(1, place.width), line.to)) };
}

function goTo(editor: EditorView | undefined, line: number, column: number): void {
  if (!editor || line < 1 || line > editor.state.doc.lines) return;
  const anchor = Math.min(editor.state.doc.line(line).from + column - 1, editor.state.doc.line(line).to);
  editor.dispatch({ selection: { anchor }, scrollIntoView: true });
  editor.focus();
}
