// A study: its progress, its grid, its cells, and two metrics against each other.

import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { StudyCell, StudyResults } from "../backend/backend";
import { unbroken } from "../core/quantity";
import { axisOf, firstAxes, isFailed, mean, progressOf, resumed, shareOf, titleOf } from "../core/study";
import { Icon } from "./icons";
import { message } from "../store/page";
import { copyLink } from "./Share";
import { Cells, Heat } from "./StudyTables";
import { TradeOff } from "./TradeOff";
import { use, useStore } from "./use";

export function StudyView() {
  const store = useStore();
  const path = use((state) => state.study) ?? "";
  const jobs = use((state) => state.jobs);
  const session = use((state) => state.session)!;
  const job = Object.values(jobs).reverse().find((one) => one.kind === "study" && one.path === path);
  const ended = use((state) => state.studyRuns[path] ?? 0);
  const { found, problem } = useStudy(path, `${job?.state} ${ended}`);
  const [metric, setMetric] = useState("goodput");
  const [axes, setAxes] = useState<[string, string]>();
  const going = job?.state === "running" || job?.state === "waiting";

  const rest = found && resumed(found.left);
  const failed = found?.runs.filter(isFailed).length ?? 0;
  const names = Object.keys(found?.axes ?? {});
  const metrics = useMemo(() => (found ? Object.keys(found.metrics).filter((name) => found.cells.some((cell) => mean(found, cell, name) !== undefined)) : []), [found]);
  const open = (cell: StudyCell) => void store.runs.inspect(found!.places[cell.cell]!);
  const first = useMemo((): [string, string] => (found ? firstAxes(found) : ["", ""]), [found]);
  const [across, down] = axes ?? first;
  return (
    <main className="study" aria-label={`Study ${path}`}>
      <div className="row">
        <h1>{found?.name ?? path.split("/").pop()}</h1>
        {job && (
          <span role="status" className="said">
            {going ? progressOf(job) : job.state}
            {job.message && `: ${unbroken(job.message)}`}
          </span>
        )}
        {failed > 0 && (
          <span className="bad">
            {failed} of {found!.cells.length * found!.repeat} runs failed
          </span>
        )}
        {going && job && <progress max={1} value={shareOf(job)} aria-label="Progress of the study" />}
        {going && job && !job.reporting && <button onClick={() => void store.runs.stop(job.id)}>Stop</button>}
        {found && !going && rest && (
          <button
            className="primary"
            disabled={!session.may_run || session.read_only}
            title={session.may_run && !session.read_only ? undefined : "This server does not run studies"}
            onClick={() => void store.runs.startStudy({ resume: path })}
          >
            Resume: {rest}
          </button>
        )}
        <span className="space" />
        {found && !going && (
          <a className="button" href={store.backend.reportAddress([path])} target="_blank" rel="noreferrer">
            <Icon name="report" /> Open report
          </a>
        )}
        {found && !going && (
          <>
            <a className="button" href={store.backend.reportAddress([path], true)} download title="One file that opens in any browser">
              <Icon name="download" /> Download report
            </a>
            <a className="button" href={store.backend.archiveAddress(path)} download title="Every run, as a ZIP archive">
              <Icon name="download" /> Download study
            </a>
            <button onClick={() => void copyLink(store, "study", path)}>Copy link</button>
          </>
        )}
        <button onClick={() => store.set({ view: "edit" })}>Back to the drawing</button>
      </div>
      {/* A study that failed before its first run has left nothing, and its status says why. */}
      {!found && !job?.message && <p className="empty">{going ? "Cells appear here as their runs end." : problem || "Reading…"}</p>}
      {found && (
        <>
          <div className="row">
            <label>
              Metric
              <select disabled={!metrics.length} value={metric} onChange={(event) => setMetric(event.target.value)}>
                {metrics.map((name) => (
                  <option key={name} value={name} title={found.metrics[name]?.about}>
                    {titleOf(found, name)}
                  </option>
                ))}
              </select>
            </label>
            {names.length > 1 &&
              (["Across", "Down"] as const).map((label, index) => (
                <label key={label}>
                  {label}
                  <select
                    value={index ? down : across}
                    onChange={({ target: { value } }) => setAxes(index ? [across === value && down ? down : across, value] : [value, down === value ? across : down])}
                  >
                    {index > 0 && <option value="">none</option>}
                    {names.map((name) => (
                      <option key={name} value={name}>
                        {axisOf(found, name)}
                      </option>
                    ))}
                  </select>
                </label>
              ))}
          </div>
          <Heat found={found} metric={metric} across={across} down={down} open={open} />
          {metrics.length > 1 && (
            <TradeOff found={found} metrics={metrics} metric={metric} open={open} />
          )}
          {found.expectations.length > 0 && !going && (
            <ul className="expectations" aria-label="Expectations">
              {found.expectations.map(({ statement, verdict }) => (
                <li key={statement}>
                  <span className={`verdict ${verdict}`}>{verdict}</span> <code>{unbroken(statement)}</code>
                </li>
              ))}
            </ul>
          )}
          <Cells found={found} metric={metric} names={names} />
        </>
      )}
    </main>
  );
}

/** A study's results, read again whenever `stage` is another one, but never twice at once. */
function useStudy(path: string, stage: string): { found?: StudyResults; problem: string } {
  const store = useStore();
  const [read, setRead] = useState<{ path: string; found?: StudyResults; problem: string }>();
  const wanted = useRef({ path, busy: false, again: false });
  wanted.current.path = path;
  const fetchNow = useCallback(async () => {
    const now = wanted.current;
    now.again = true;
    if (now.busy) return;
    now.busy = true;
    while (now.again) {
      now.again = false;
      const asked = now.path;
      await store.backend.study(asked).then(
        (found) => setRead({ path: asked, found, problem: "" }),
        (error: unknown) => setRead((before) => ({ path: asked, found: before?.path === asked ? before.found : undefined, problem: message(error) })),
      );
    }
    now.busy = false;
  }, [store]);
  useEffect(() => void fetchNow(), [fetchNow, path, stage]);
  return read?.path === path ? read : { problem: "" };
}
