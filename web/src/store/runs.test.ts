import { describe, expect, it, vi } from "vitest";
import type { Job } from "../backend/backend";
import type { Documents } from "./documents";
import type { Page } from "./page";
import { grown, inTurn, Runs } from "./runs";
import { INITIAL, type State } from "./state";

const job = (time: number, goodput: Record<string, number>, cwnd: Record<string, number> = {}): Job => ({
  type: "job", id: "run-1", kind: "run", name: "mine", engine: "kernel", path: "runs/mine", state: "running", message: "",
  repetition: 1, repeat: 1, reporting: false, time, duration: 10, goodput, cwnd, rtt: {}, overload: null, notes: [],
});

describe("the curves of a run that goes on", () => {
  it("grow with each report; a flow has no value before its first", () => {
    const one = grown(undefined, job(0.1, { a: 1e6 }, { a: 10 }));
    const two = grown(one, job(0.2, { a: 2e6, b: 3e6 }, { a: 11, b: 12 }));
    expect(two.times).toEqual([0.1, 0.2]);
    expect(two.panels.goodput).toEqual({ a: [1e6, 2e6], b: [undefined, 3e6] });
    expect(two.panels.cwnd).toEqual({ a: [10, 11], b: [undefined, 12] });
    // Its sockets are closed.
    expect(grown(two, job(0.3, { a: 2e6, b: 0 }, { a: 12 })).panels.cwnd.b).toEqual([undefined, 12, undefined]);
  });

  it("stay as they are without a new report, and begin again with another attempt at the run", () => {
    const one = grown(undefined, job(5, { a: 1e6 }));
    expect(grown(one, job(5, { a: 2e6 }))).toBe(one);
    expect(grown(one, job(0, {})).times).toEqual([]);
    expect(grown(one, job(0.1, { a: 3e6 })).panels.goodput).toEqual({ a: [3e6] });
  });

  it("of hours have as many points as can be seen, from the first to the last", () => {
    let live = grown(undefined, job(0.1, { a: 0.1 }));
    for (let count = 2; count <= 36_000; count++) live = grown(live, job(count / 10, { a: count / 10 }, { a: 10 }));
    expect(live.times.length).toBeGreaterThan(500);
    expect(live.times.length).toBeLessThan(2001);
    expect(live.times[0]).toBeLessThan(60);
    expect(live.times[live.times.length - 1]).toBe(3600);
    expect(live.panels.goodput.a).toEqual(live.times);
    expect(live.panels.cwnd.a).toHaveLength(live.times.length);
  });
});

describe("more results than are laid over each other", () => {
  it("replace the first, and say so", async () => {
    const notice = vi.fn();
    const overlays = [1, 2, 3, 4, 5, 6].map((each) => ({ path: `runs/${each}`, curves: { header: {}, arrays: [] } }));
    const page = {
      state: { ...INITIAL, overlays } as unknown as State,
      set(part: Partial<State>) {
        this.state = { ...this.state, ...part };
      },
      act: (_: string, work: () => Promise<unknown>) => work(),
      notice,
      backend: { curves: async () => ({ header: {}, arrays: [] }) },
    };
    await new Runs(page as unknown as Page, {} as Documents, () => undefined).overlay("runs/7");
    expect(page.state.overlays.map(({ path }) => path)).toEqual([2, 3, 4, 5, 6, 7].map((each) => `runs/${each}`));
    expect(notice.mock.calls).toEqual([["At most 6 results are laid over each other: runs/1 was taken off."]]);
  });
});

describe("a run whose end is heard of before the answer to its start", () => {
  it("is laid over the curves once, as any other", async () => {
    const curves = vi.fn(async () => ({ header: {}, arrays: [] }));
    let runs: Runs;
    const page = {
      state: { ...INITIAL } as State,
      set(part: Partial<State>) {
        this.state = { ...this.state, ...part };
      },
      act: (_: string, work: () => Promise<unknown>) => work(),
      notice: () => undefined,
      backend: {
        run: async () => {
          runs.hear({ ...job(10, {}), state: "done" });
          return job(0, {});
        },
        curves,
      },
    };
    runs = new Runs(page as unknown as Page, { list: async () => undefined } as unknown as Documents, () => undefined);
    await runs.start();
    await vi.waitFor(() => expect(page.state.overlays.map(({ path }) => path)).toEqual(["runs/mine"]));
    runs.hear({ ...job(10, {}), state: "done" });
    expect(curves).toHaveBeenCalledTimes(1);
    // An old one, which a page hears of when it is opened, is not.
    runs.hear({ ...job(10, {}), id: "run-0", path: "runs/old", state: "done" });
    expect(curves).toHaveBeenCalledTimes(1);
  });
});

describe("reports that come faster than the page draws", () => {
  it("are drawn together, with every point; a change of state is drawn at once", () => {
    vi.useFakeTimers();
    const set = vi.fn((part: Partial<State>) => void Object.assign(page.state, part));
    const page = { state: { ...INITIAL } as State, set, notice: () => undefined, act: async () => true };
    const runs = new Runs(page as unknown as Page, { list: async () => undefined } as unknown as Documents, () => undefined);
    runs.hear(job(0, {}));
    expect(set).toHaveBeenCalledTimes(1);
    for (let count = 1; count <= 50; count++) runs.hear(job(count / 10, { a: count }));
    expect(set).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(1000);
    expect(set).toHaveBeenCalledTimes(2);
    expect(page.state.live["run-1"]!.times).toHaveLength(50);
    runs.hear({ ...job(5.1, { a: 51 }), state: "interrupted" });
    expect(page.state.jobs["run-1"]!.state).toBe("interrupted");
    vi.useRealTimers();
  });
});

describe("runs that go on", () => {
  it("come before those that wait, whichever began first", () => {
    const jobs = (["waiting", "done", "running", "waiting"] as const).map((state, index) => ({ ...job(0, {}), id: `run-${index}`, state }));
    expect(inTurn(jobs).map(({ id }) => id)).toEqual(["run-2", "run-0", "run-3"]);
  });
});

describe("a result that is looked at while its run goes on", () => {
  const looking = (answers: string[], jobs: State["jobs"]) => {
    const page = {
      state: { ...INITIAL, jobs } as State,
      set(part: Partial<State>) {
        this.state = { ...this.state, ...part };
      },
      act: (_: string, work: () => Promise<unknown>) => work(),
      notice: () => undefined,
      dismissAbout: () => undefined,
      backend: { result: vi.fn(async () => ({ path: "runs/mine", status: answers.shift() })), curves: async () => ({ header: {}, arrays: [] }) },
    };
    return { page, runs: new Runs(page as unknown as Page, { list: async () => undefined } as unknown as Documents, () => undefined) };
  };

  it("is read again at its end, and what is looked at by then stays", async () => {
    const { page, runs } = looking(["running", "done"], { "run-1": job(1, {}) });
    await runs.inspect("runs/mine");
    expect([page.state.result!.status, page.state.tab]).toEqual(["running", "result"]);
    page.set({ tab: "packets" });
    runs.hear({ ...job(10, {}), state: "done" });
    await vi.waitFor(() => expect(page.state.result!.status).toBe("done"));
    expect(page.state.tab).toBe("packets");
  });

  it("is read again where its end was heard of before the answer", async () => {
    const { page, runs } = looking(["running", "done"], { "run-1": { ...job(10, {}), state: "done" } });
    await runs.inspect("runs/mine");
    expect(page.state.result!.status).toBe("done");
  });
});

describe("a page that reaches a server again", () => {
  const page = (state: State) => ({
    state,
    notice: vi.fn(),
    set(part: Partial<State>) {
      Object.assign(this.state, part);
    },
    act: async (_failed: string, work: () => Promise<unknown>) => void (await work()),
    backend: { curves: vi.fn(async () => ({ header: { engine: "kernel" }, arrays: [] })) },
  });
  const documents = { list: async () => {} } as unknown as Documents;
  const going = job(1, {});

  it("lays over the curves what has ended meanwhile, with its engine, whatever the listing holds by then", async () => {
    const made = page({ ...INITIAL, jobs: { "run-1": going } });
    const runs = new Runs(made as unknown as Page, documents, () => {});
    runs.greet([{ ...going, state: "done" }]);
    await vi.waitFor(() => expect(made.state.overlays.map(({ path, curves }) => [path, curves.header.engine])).toEqual([["runs/mine", "kernel"]]));
  });

  it("names a run that ended with its server, whose successor counts its runs anew", () => {
    const made = page({ ...INITIAL, jobs: { "run-1": going } });
    const runs = new Runs(made as unknown as Page, documents, () => {});
    runs.greet([{ ...going, path: "runs/another" }]);
    expect(made.notice).toHaveBeenCalledWith("mine ended with the server.", true);
    expect(made.state.jobs["run-1"]?.path).toBe("runs/another");
  });
});
