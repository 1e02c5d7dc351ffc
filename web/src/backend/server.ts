// The back end behind HTTP and one WebSocket.

import { decode } from "../core/frame";
import { type Backend, BackendError, type Event, type Stream, type StudyResults, type Wanted } from "./backend";

const PAGE = Math.random().toString(36).slice(2);
const LONGEST_WAIT = 5000;

// Requests may overtake each other: the server is notified which of them is the newest.
let previews = 0;

export function server(base = new URL(".", document.baseURI)): Backend {
  const address = (path: string, query: Record<string, string | number | undefined | string[]> = {}) => {
    const url = new URL(`api/${path}`, base);
    for (const [key, value] of Object.entries(query)) {
      if (Array.isArray(value)) value.forEach((one) => url.searchParams.append(key, one));
      else if (value !== undefined) url.searchParams.set(key, String(value));
    }
    return url;
  };

  async function ask(url: URL, init?: RequestInit): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(url, { credentials: "same-origin", ...init });
    } catch (problem) {
      if (problem instanceof DOMException && problem.name === "AbortError") throw problem;
      throw new BackendError(`no answer from ${named(base)}: check that tcplab ui still runs there`, 0);
    }
    if (response.ok) return response;
    const said = (await response.json().catch(() => ({}))) as { error?: string };
    throw new BackendError(said.error ?? `the server answers ${response.status}`, response.status);
  }

  const json = async <T>(url: URL, init?: RequestInit) => (await (await ask(url, init)).json()) as T;
  const send = (method: string, body: unknown, signal?: AbortSignal): RequestInit => ({
    method,
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
    signal,
  });
  const frame = async <T>(url: URL, init?: RequestInit) => decode<T>(await (await ask(url, init)).arrayBuffer());
  const window = ({ from, to, points, panels, repetition }: Wanted) => ({
    from,
    to,
    points: Math.round(points),
    panels: panels?.join(","),
    repetition,
  });

  return {
    page: PAGE,
    address: named(base),
    session: () => json(address("session")),
    login: async (token) => void (await ask(address("login"), send("POST", { token }))),
    schema: () => json(address("schema")),
    files: () => json(address("files")),
    open: (path) => json(address("file", { path })),
    save: (path, text, version, layout) =>
      json(address("file"), send("PUT", { path, text, version, layout, page: PAGE })),
    check: (text, path, engine, signal) => json(address("check"), send("POST", { text, path, engine }, signal)),
    imported: (text, name) => json(address("import"), send("POST", { text, name })),
    preview: async (text, path, { points, panels, packets }, signal) => {
      const body = { text, path, page: PAGE, order: ++previews, points: Math.round(points), panels, packets };
      const response = await ask(address("preview"), send("POST", body, signal));
      if (response.status === 204) return undefined;
      if (response.headers.get("content-type")?.includes("json")) return ((await response.json()) as { refused: string }).refused;
      return decode(await response.arrayBuffer());
    },
    run: (text, path, engine, packets) => json(address("runs"), send("POST", { text, path, engine, packets })),
    stop: async (job) => void (await ask(address(`jobs/${encodeURIComponent(job)}/stop`), { method: "POST" })),
    curves: (run, wanted) => frame(address("curves", { run, ...window(wanted) })),
    packets: (run, from, to) => frame(address("packets", { run, from, to })),
    result: (path) => json(address("result", { path })),
    study: async (path) => {
      const response = await ask(address("study", { path }));
      return response.status === 204 ? undefined : ((await response.json()) as StudyResults);
    },
    startStudy: (what) => json(address("studies"), send("POST", what)),
    reportAddress: (paths, download) => address("report", { path: paths, download: download ? 1 : undefined }).href,
    archiveAddress: (path) => address("archive", { path }).href,
    labs: () => json(address("labs")),
    bringUp: (text, path) => json(address("labs"), send("POST", { text, path })),
    takeDown: async (lab) => void (await ask(address(`labs/${lab}/down`), { method: "POST" })),
    changeLink: async (lab, link, settings, direction) =>
      void (await ask(address(`labs/${lab}/change`), send("POST", { link, settings, direction }))),
    traffic: async (lab, text, path) => void (await ask(address(`labs/${lab}/traffic`), send("POST", { text, path }))),
    tables: (lab, node) => json(address(`labs/${lab}/tables`, { node })),
    enter: (lab, what, query, notify, ended) => enter(address(`labs/${lab}/${what}`, query), notify, ended),
    captureAddress: (capture) => address(`captures/${capture}`).href,
    ladderAddress: (capture, flow, theme) => address(`captures/${capture}/ladder`, { flow, theme }).href,
    listen: (notify) => listen(address("live"), notify),
  };
}

/** The server's address as people write it. */
export const named = (base: URL): string => (base.origin + base.pathname).replace(/\/$/, "");

function enter(url: URL, notify: (data: string | ArrayBuffer) => void, ended: (why: string) => void): Stream {
  url.protocol = url.protocol.replace("http", "ws");
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  let closed = false;
  socket.onmessage = (message) => notify(message.data as string | ArrayBuffer);
  socket.onclose = (event) => closed || ended(event.reason || (event.wasClean ? "" : "the connection to the server is lost"));
  return {
    send: (data) => socket.readyState === WebSocket.OPEN && socket.send(data),
    close: () => {
      closed = true;
      socket.close();
    },
  };
}

// A lost connection is tried again, at first soon, then every few seconds.
function listen(url: URL, notify: (event: Event) => void): () => void {
  let socket: WebSocket | undefined;
  let wait = 250;
  let timer = 0;
  let closed = false;
  url.protocol = url.protocol.replace("http", "ws");

  function connect(): void {
    socket = new WebSocket(url);
    socket.onopen = () => {
      wait = 250;
      notify({ type: "connected" });
    };
    socket.onmessage = (message) => notify(JSON.parse(message.data as string) as Event);
    socket.onclose = () => {
      if (closed) return;
      notify({ type: "lost" });
      timer = window.setTimeout(connect, wait);
      wait = Math.min(wait * 1.6, LONGEST_WAIT);
    };
  }
  connect();
  return () => {
    closed = true;
    clearTimeout(timer);
    socket?.close();
  };
}
