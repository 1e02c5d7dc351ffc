// The page's store: its parts, its beginning, and the news that reach them.

import { BackendError, type Event } from "../backend/backend";
import { kindsOf } from "../core/kinds";
import { Documents } from "./documents";
import { message, Page } from "./page";
import { Runs } from "./runs";
import { Simulation } from "./simulation";

/** The objects that an address of this page can name. */
export interface Asked {
  scenario?: string | null;
  result?: string | null;
  study?: string | null;
}

// Until a server that did not answer is asked again, ms.
const AGAIN = 1000;

export class Store extends Page {
  readonly simulation: Simulation = new Simulation(this, (plan) => this.documents.planned(plan));
  readonly documents: Documents = new Documents(this, (another) => this.simulation.changed(another));
  readonly runs = new Runs(this, this.documents, () => void this.simulation.zoom(this.state.window));

  /** The object that the address named, until it is shown: there may be no access yet. */
  private asked: Asked = {};
  /** Number of the latest request for the labs: the answers to older ones are too late. */
  private lookings = 0;

  async start(token: string | null, what: Asked = this.asked): Promise<void> {
    this.asked = what;
    try {
      if (token) await this.backend.login(token);
      const [session, files, schema] = await Promise.all([this.backend.session(), this.backend.files(), this.backend.schema()]);
      this.set({ session, files, schema, kinds: kindsOf(schema, session.node_kinds), locked: undefined });
    } catch (problem) {
      const status = problem instanceof BackendError ? problem.status : 0;
      this.set({ locked: status === 401 ? (token ? message(problem) : "") : message(problem) });
      // Without an answer: it may be starting, or the machine's interfaces have changed meanwhile.
      if (!status) window.setTimeout(() => void this.start(token), AGAIN);
      return;
    }
    this.backend.listen((event) => this.hear(event));
    await this.documents.begin();
    this.asked = {};
    await this.go(what);
  }

  /** The object that a shared address names. */
  async go({ scenario, result, study }: Asked): Promise<void> {
    if (scenario) await this.documents.open(scenario);
    if (result) await this.runs.inspect(result);
    if (study) this.set({ view: "study", study });
  }

  private hear(event: Event): void {
    switch (event.type) {
      case "connected":
        this.set({ connection: "open" });
        void this.documents.list();
        void this.documents.follow();
        void this.lookForLabs();
        this.simulation.schedule();
        break;
      case "lost":
        this.set({ connection: "lost", busy: false });
        void this.backend.session().catch((problem: unknown) => {
          if (problem instanceof BackendError && problem.status === 401) {
            this.set({ locked: "The server has a new token. Open the address that it printed." });
          }
        });
        break;
      case "hello":
        this.runs.greet(event.jobs);
        break;
      case "pages":
        this.set({ others: event.count - 1 });
        break;
      case "files":
        void this.documents.list();
        if (event.paths.some((path) => path === this.state.path || layoutName(this.state.path) === path)) void this.documents.follow();
        break;
      case "saved":
        if (event.page !== this.backend.page && event.path === this.state.path) void this.documents.follow();
        break;
      case "preview":
        if (event.page === this.backend.page && this.state.busy) this.set({ share: event.share });
        break;
      case "job":
        this.runs.hear(event);
        break;
      case "study":
        this.set({ studyRuns: { ...this.state.studyRuns, [event.path]: (this.state.studyRuns[event.path] ?? 0) + 1 } });
        break;
      case "labs":
        void this.lookForLabs();
        break;
      case "lab-changed":
        this.set({ labChange: `${event.link}: ${event.settings}` });
        break;
      case "lab-trouble":
        this.notice(event.message, true);
        break;
    }
  }

  async lookForLabs(): Promise<void> {
    if (!this.state.session?.may_run) return;
    const number = ++this.lookings;
    try {
      const labs = await this.backend.labs();
      if (number === this.lookings) this.set({ labs });
    } catch (problem) {
      // The page says already that the server does not answer.
      if (problem instanceof BackendError && problem.status) this.notice(message(problem), true);
    }
  }
}

const layoutName = (path: string) => path.replace(/\.ya?ml$/, ".layout.json");
