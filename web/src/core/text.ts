// Edits of a YAML text that leave every other character as it is: comments, order, quoting, spacing.

import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  stringify,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";

export type Path = (string | number)[];
export type Value = string | number | boolean | null | Value[] | { [key: string]: Value | undefined };

/** The data that a text could be read as; undefined where it is not YAML at all. */
export interface Read {
  text: string;
  document: Document;
  data: unknown;
  broken: boolean;
}

export function read(text: string): Read {
  const document = parseDocument(text, { keepSourceTokens: false, strict: false, uniqueKeys: false });
  const broken = document.errors.length > 0;
  let data: unknown;
  try {
    data = document.toJS({ maxAliasCount: 1000 });
  } catch {
    data = undefined;
  }
  return { text, document, data, broken };
}

/** A value in one line, as a person writes it in a scenario. */
export function inline(value: Value): string {
  const kept = JSON.parse(JSON.stringify(value)) as Value;
  // In braces, so that a text is quoted where braces need it.
  const text = stringify([kept], { collectionStyle: "flow", flowCollectionPadding: false, lineWidth: 0 });
  return text.trim().slice(1, -1);
}

/** The text with the value at `path` set; keys that are missing are made. Lists are reached by number. */
export function setIn(text: string, path: Path, value: Value): string {
  const { document, broken } = read(text);
  if (broken || path.length === 0) return text;
  const there = document.getIn(path, true) as Node | undefined;
  let edited: string;
  if (there && typeof there === "object" && "range" in there && there.range) {
    edited = splice(text, there.range[0], there.range[1], blockSafe(text, there, value));
  } else {
    edited = insert(text, document, path, value);
  }
  return agreed(edited, text, (copy) => copy.setIn(path, copy.createNode(value, { flow: true })));
}

/** The text without what stands at `path`; a mapping that it leaves empty goes with it. */
export function deleteIn(text: string, path: Path): string {
  const { document, broken } = read(text);
  if (broken || path.length === 0 || !document.hasIn(path)) return text;
  const parentPath = path.slice(0, -1);
  const parent = (parentPath.length ? document.getIn(parentPath, true) : document.contents) as Node;
  if ((isMap(parent) || isSeq(parent)) && parent.items.length === 1 && parentPath.length) {
    if (isMap(parent)) return deleteIn(text, parentPath);
    return emptied(text, parent, parentPath);
  }
  if (!isMap(parent) && !isSeq(parent)) return text;
  const index = isSeq(parent)
    ? Number(path[path.length - 1])
    : parent.items.findIndex((pair) => keyOf(pair) === String(path[path.length - 1]));
  const edited = parent.flow ? cutFlow(text, parent, index) : cutBlock(text, parent, index);
  return agreed(edited, text, (copy) => copy.deleteIn(path));
}

/** The text with an empty list in place of this one, behind its key. */
function emptied(text: string, list: Node, path: Path): string {
  const [from, to] = list.range!;
  const before = text.slice(0, from).replace(/:[ \t]*\n[ \t]*$/, ": ");
  // A list in block style ends behind the line of its last item.
  const after = from + text.slice(from, to).trimEnd().length;
  return agreed(`${before}[]${text.slice(after)}`, text, (copy) => copy.setIn(path, copy.createNode([], { flow: true })));
}

/** The text with a value added at the end of the list at `path`, which is made where it is missing. */
export function append(text: string, path: Path, value: Value): string {
  const { document, broken } = read(text);
  if (broken) return text;
  const list = document.getIn(path, true) as Node | undefined;
  let edited: string;
  if (isSeq(list) && list.items.length && !list.flow) {
    const last = list.items[list.items.length - 1] as Node;
    const indent = columnOf(text, dashOf(text, startOf(last)));
    edited = insertLine(text, endOf(last), `${" ".repeat(indent)}- ${inline(value)}`);
  } else if (isSeq(list) && list.items.length) {
    const last = list.items[list.items.length - 1] as Node;
    edited = splice(text, valueEnd(last), valueEnd(last), `, ${inline(value)}`);
  } else {
    const key = path[path.length - 1];
    const parentPath = path.slice(0, -1);
    const parent = (parentPath.length ? document.getIn(parentPath, true) : document.contents) as Node | undefined;
    if (list && isMap(parent) && !parent.flow && list.range) {
      // `nodes: []` becomes a list of one line each.
      const pair = parent.items.find((item) => keyOf(item) === String(key)) as Pair<Node, Node>;
      const indent = columnOf(text, startOf(pair.key));
      const keyEnd = text.indexOf(":", endOfValue(pair.key)) + 1;
      const line = `\n${" ".repeat(indent + 2)}- ${inline(value)}`;
      edited = text.slice(0, keyEnd) + line + text.slice(list.range[1]);
    } else if (!list && isMap(parent) && !parent.flow && parent.items.length) {
      const indent = columnOf(text, startOf((parent.items[0] as Pair<Node>).key));
      const pad = " ".repeat(indent);
      edited = insertLine(text, endOf(parent), `${pad}${String(key)}:\n${pad}  - ${inline(value)}`);
    } else {
      return setIn(text, path, [value]);
    }
  }
  return agreed(edited, text, (copy) => {
    if (copy.getIn(path) == null) copy.setIn(path, copy.createNode([]));
    copy.addIn(path, copy.createNode(value, { flow: true }));
  });
}

/** Where the value at `path` stands, or the nearest one around it: line and column from 1. */
export function placeOf(text: string, path: Path): { line: number; column: number } | undefined {
  const { document } = read(text);
  for (let depth = path.length; depth > 0; depth--) {
    const node = document.getIn(path.slice(0, depth), true) as Node | undefined;
    const start = node && typeof node === "object" && "range" in node ? node.range?.[0] : undefined;
    if (start !== undefined) {
      const before = text.slice(0, start);
      return { line: before.split("\n").length, column: start - before.lastIndexOf("\n") };
    }
  }
  return undefined;
}

// The edit by characters must mean what the edit by the library means; else the library's stands, which
// keeps comments and order but not the spacing.
function agreed(edited: string, text: string, change: (copy: Document) => void): string {
  const copy = parseDocument(text, { strict: false });
  change(copy);
  const found = read(edited);
  try {
    if (!found.broken && JSON.stringify(found.data) === JSON.stringify(copy.toJS())) return edited;
  } catch {
    // Below.
  }
  return copy.toString({ lineWidth: 0, flowCollectionPadding: false });
}

function insert(text: string, document: Document, path: Path, value: Value): string {
  // The longest beginning of the path that is there; the rest is made in one piece.
  let depth = path.length - 1;
  while (depth > 0 && document.getIn(path.slice(0, depth), true) === undefined) depth--;
  const parent = (depth ? document.getIn(path.slice(0, depth), true) : document.contents) as Node | null;
  const key = path[depth] as string | number;
  const inner = path.slice(depth + 1).reduceRight<Value>((made, step) => ({ [String(step)]: made }), value);
  if (isSeq(parent)) return append(text, path.slice(0, depth), inner);
  if (isMap(parent) && parent.flow) {
    const entry = `${inline(String(key))}: ${inline(inner)}`;
    const last = parent.items[parent.items.length - 1] as Pair<Node, Node> | undefined;
    if (!last) return splice(text, parent.range![0], parent.range![1], `{${entry}}`);
    const end = last.value ? valueEnd(last.value) : endOfValue(last.key);
    return splice(text, end, end, `, ${entry}`);
  }
  if (isMap(parent) && parent.items.length) {
    const indent = columnOf(text, startOf((parent.items[0] as Pair<Node>).key));
    return insertLine(text, endOf(parent), `${" ".repeat(indent)}${inline(String(key))}: ${inline(inner)}`);
  }
  if (isScalar(parent) && parent.range && depth > 0) {
    const flat = { [String(key)]: inner };
    const [start, end] = parent.range;
    return splice(text, start, end, start === end ? ` ${inline(flat)}` : inline(flat));
  }
  if (!parent || (isScalar(parent) && parent.value == null)) {
    const pad = text && !text.endsWith("\n") ? "\n" : "";
    return `${text}${pad}${String(key)}: ${inline(inner)}\n`;
  }
  return text;
}

function cutFlow(text: string, parent: YAMLMap | YAMLSeq, index: number): string {
  const item = (at: number) => parent.items[at] as Node | Pair<Node, Node>;
  const [start, end] = [startOfItem(item(index)), endOfItem(item(index))];
  if (index + 1 < parent.items.length) return splice(text, start, startOfItem(item(index + 1)), "");
  return splice(text, endOfItem(item(index - 1)), end, "");
}

function cutBlock(text: string, parent: YAMLMap | YAMLSeq, index: number): string {
  const item = parent.items[index] as Node | Pair<Node, Node>;
  let start = startOfItem(item);
  if (isSeq(parent)) start = dashOf(text, start);
  const lineStart = text.lastIndexOf("\n", start - 1) + 1;
  const end = lineEnd(text, endOfItem(item));
  if (text.slice(lineStart, start).trim() === "") return text.slice(0, lineStart) + text.slice(end);
  // The first key of a list item shares its line with the dash: the next key moves up.
  const next = parent.items[index + 1] as Pair<Node, Node> | undefined;
  return next ? text.slice(0, start) + text.slice(startOfItem(next)) : text;
}

function blockSafe(text: string, there: Node, value: Value): string {
  // Text in several lines ends with a line break that must stay.
  const range = there.range!;
  const ends = text.slice(range[0], range[1]).endsWith("\n") ? "\n" : "";
  // A block mapping or list begins on its own line: what replaces it may stand there just as well.
  if (range[0] === range[1] && text[range[0] - 1] === ":") return ` ${inline(value)}`;
  return inline(value) + ends;
}

function insertLine(text: string, after: number, line: string): string {
  const at = lineEnd(text, after);
  const lead = at > 0 && text[at - 1] !== "\n" ? "\n" : "";
  return `${text.slice(0, at)}${lead}${line}\n${text.slice(at)}`;
}

const splice = (text: string, start: number, end: number, by: string) =>
  text.slice(0, start) + by + text.slice(end);

const keyOf = (pair: unknown) =>
  isPair(pair) ? String(isScalar(pair.key) ? pair.key.value : pair.key) : undefined;

const startOf = (node: Node) => node.range![0];

function startOfItem(item: Node | Pair<Node, Node>): number {
  return isPair(item) ? startOf(item.key as Node) : startOf(item);
}

function endOfItem(item: Node | Pair<Node, Node>): number {
  if (!isPair(item)) return endOf(item);
  const value = item.value as Node | null;
  return value?.range ? endOf(value) : endOfValue(item.key as Node);
}

// The end of the value itself, without the comment and line break behind it.
const endOfValue = (node: Node) => node.range![1];

function valueEnd(node: Node): number {
  return node.range![1];
}

// The last character that belongs to a node: in a block, of its last item.
function endOf(node: Node): number {
  if ((isMap(node) || isSeq(node)) && !node.flow && node.items.length) {
    return endOfItem(node.items[node.items.length - 1] as Node | Pair<Node, Node>);
  }
  if (isAlias(node) || isScalar(node)) return Math.max(node.range![0], node.range![1]);
  return node.range![1];
}

// Just behind the line break that ends the line of `at`; `at` itself where a block scalar has ended one.
function lineEnd(text: string, at: number): number {
  if (at > 0 && text[at - 1] === "\n") return at;
  const found = text.indexOf("\n", at);
  return found < 0 ? text.length : found + 1;
}

const columnOf = (text: string, at: number) => at - (text.lastIndexOf("\n", at - 1) + 1);

function dashOf(text: string, at: number): number {
  let found = at - 1;
  while (found >= 0 && text[found] !== "-") found--;
  return found;
}
