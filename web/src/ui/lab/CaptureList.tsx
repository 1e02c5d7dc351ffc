// A capture on a link: packets as they come, the flow graph, and the file.

import { useEffect, useRef, useState } from "react";
import type { Captured, Stream } from "../../backend/backend";
import { Icon } from "../icons";
import { isDark, useThemeChange } from "../theme";
import { useStore } from "../use";

type Row = NonNullable<Captured["rows"]>[number];
// The packets that a person can follow, and a page can hold.
const KEPT = 300;

export function CaptureList({ lab, link }: { lab: string; link: string }) {
  const store = useStore();
  const [rows, setRows] = useState<Row[]>([]);
  const [count, setCount] = useState(0);
  const [capture, setCapture] = useState<string>();
  const [ended, setEnded] = useState<string>();
  // The flow whose graph is shown, and since when: a later one has more packets.
  const [ladder, setLadder] = useState<{ flow: number; at: number }>();
  useThemeChange();
  const stream = useRef<Stream>();
  const list = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const opened = store.backend.enter(
      lab,
      "capture",
      { link },
      (data) => {
        const said = JSON.parse(data as string) as Captured;
        if (said.capture) setCapture(said.capture);
        if (said.count !== undefined) setCount(said.count);
        if (said.rows?.length) setRows((before) => [...before, ...said.rows!].slice(-KEPT));
      },
      (why) => setEnded(why || "The capture has ended."),
    );
    stream.current = opened;
    return () => opened.close();
  }, [lab, link, store]);
  useEffect(() => {
    list.current?.scrollTo({ top: list.current.scrollHeight });
  }, [rows]);

  const flows = [...new Set(rows.flatMap((row) => row.flow ?? []))].slice(-8);
  return (
    <div className="capture">
      <div className="row">
        <span role="status" data-count={count}>
          {count} {count === 1 ? "packet" : "packets"}
          {ended && `. ${ended}`}
        </span>
        {!ended && (
          <button
            onClick={() => {
              stream.current?.close();
              setEnded("Stopped.");
            }}
          >
            <Icon name="stop" /> Stop
          </button>
        )}
        {capture && count > 0 && (
          <a className="button" href={store.backend.captureAddress(capture)} download>
            <Icon name="download" /> pcapng
          </a>
        )}
        {capture &&
          flows.map((flow) => (
            <button key={flow} onClick={() => setLadder({ flow, at: Date.now() })}>
              Flow graph {flow}
            </button>
          ))}
        {ladder && <button onClick={() => setLadder(undefined)}>Back to the list</button>}
      </div>
      {ladder && capture ? (
        <div className="ladder" tabIndex={0} role="region" aria-label="Flow graph">
          <img
            src={`${store.backend.ladderAddress(capture, ladder.flow, isDark() ? "dark" : "light")}&at=${ladder.at}`}
            alt="Packets of the flow between its two hosts"
          />
        </div>
      ) : (
        <div className="packet-list" ref={list} tabIndex={0} role="region" aria-label="Packets">
          <table>
            <thead>
              <tr>
                {["No.", "Time (s)", "Source", "Destination", "Protocol", "Length", "Info"].map((head) => (
                  <th key={head} scope="col">
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.number}>
                  <td className="number">{row.number}</td>
                  <td className="number">{(row.time / 1e9).toFixed(6)}</td>
                  <td>{row.source}</td>
                  <td>{row.destination}</td>
                  <td>{row.protocol}</td>
                  <td className="number">{row.length}</td>
                  <td>
                    {row.info} {row.note && <em>{row.note}</em>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
