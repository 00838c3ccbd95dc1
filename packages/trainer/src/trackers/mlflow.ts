import { randomUUID } from "node:crypto";
import type { RunSummary, Settings } from "../summary.js";
import { type MetricsSink, recording, type TrackedRun, type Tracker } from "./metrics-sink.js";
import { Outbox } from "./outbox.js";
import { finite, type Scalars, scalarsOf, testScalars } from "./scalars.js";

/** The server of MLflow. Defaults are the environment variables of MLflow's own clients. */
export interface MlflowOptions {
  /** The address of the server. Default: `MLFLOW_TRACKING_URI`. */
  readonly trackingUri?: string | undefined;
  /** Default: `MLFLOW_EXPERIMENT_NAME`, or "Default". */
  readonly experiment?: string | undefined;
  /** Milliseconds that the server has for what is sent at once, also at the end of a run. Default 5000. */
  readonly patience?: number | undefined;
}

interface Metric {
  readonly key: string;
  readonly value: number;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
  readonly step: number;
}

/** The tag that has the key of a run. */
const tag = "halfstep.key";

/** Limits of a request, by MLflow's documentation. */
const [mostMetrics, mostParameters, longestParameter] = [1000, 100, 500];

/**
 * A tracker that logs to an MLflow server by its REST API: settings as parameters, steps and evaluations as metrics. A resumed run goes on
 * in the run of its checkpoint. `MLFLOW_TRACKING_TOKEN`, or `MLFLOW_TRACKING_USERNAME` and `MLFLOW_TRACKING_PASSWORD`, are sent along.
 *
 * @throws RangeError where the address is missing or none of a server
 * @example
 * const sink = mlflowTracker({ trackingUri: "http://127.0.0.1:5000" })({ name: "digits float16", onNote: console.error });
 * await train({ …, hooks: { mlflow: sink } });
 * await sink.close(summary);
 */
export function mlflowTracker({
  trackingUri = process.env.MLFLOW_TRACKING_URI,
  experiment = process.env.MLFLOW_EXPERIMENT_NAME ?? "Default",
  patience = 5000,
}: MlflowOptions = {}): Tracker {
  if (trackingUri === undefined || trackingUri === "")
    throw new RangeError(
      "MLFLOW_TRACKING_URI is not set: give the address of an MLflow server, such as http://127.0.0.1:5000",
    );
  if (!URL.canParse(trackingUri) || !/^https?:$/.test(new URL(trackingUri).protocol))
    throw new RangeError(
      `MLFLOW_TRACKING_URI is ${trackingUri}: give the address of an MLflow server, such as http://127.0.0.1:5000`,
    );
  const server = new Server(trackingUri, patience);
  return (run): MetricsSink => {
    const tracked = new MlflowRun(server, experiment, run);
    return {
      ...recording((line) => tracked.add(scalarsOf(line), line.step)),
      close: (summary) => tracked.close(summary),
      stateDict: () => ({ key: tracked.key }),
      loadStateDict: ({ key }: { readonly key: unknown }) => tracked.goOn(key),
    };
  };
}

class MlflowRun {
  /** A tag by which a resumed run finds its run: the server may give an id only after a checkpoint. */
  key: string = randomUUID();
  #isResumed = false;
  #runId: string | undefined;
  readonly #server: Server;
  readonly #experiment: string;
  readonly #run: TrackedRun;
  readonly #outbox: Outbox<Metric>;
  /** Whether the run has its parameters and is marked as running. */
  #isBegun = false;
  #closing: Promise<void> | undefined;

  constructor(server: Server, experiment: string, run: TrackedRun) {
    this.#server = server;
    this.#experiment = experiment;
    this.#run = run;
    this.#outbox = new Outbox({
      send: (metrics, signal) => this.#send(metrics, signal),
      onFailure: ({ message }) =>
        run.onNote(
          `MLflow at ${server.address} cannot be logged to (${message}): training goes on`,
        ),
      most: mostMetrics,
      every: 2000,
      patience: server.patience,
    });
  }

  close(summary: RunSummary | undefined): Promise<void> {
    this.#closing ??= this.#close(summary);
    return this.#closing;
  }

  async #close(summary: RunSummary | undefined): Promise<void> {
    if (summary) this.add(testScalars(summary), summary.steps);
    const lost = await this.#outbox.close();
    if (lost > 0)
      this.#run.onNote(`${lost} figures did not reach MLflow at ${this.#server.address}`);
    const status = summary ? "FINISHED" : "KILLED";
    // The figures are there without it.
    if (lost === 0 && this.#isBegun) await this.#update(status, Date.now()).catch(() => {});
  }

  /** Goes on in the run that was begun under a key. */
  goOn(key: unknown): void {
    // It stands in a filter of the server.
    if (typeof key !== "string" || !/^[\w-]+$/.test(key))
      throw new TypeError("the state of an MLflow run needs its key");
    this.key = key;
    this.#isResumed = true;
  }

  add(scalars: Scalars, step: number): void {
    const timestamp = Date.now();
    this.#outbox.add(
      ...Object.entries(finite(scalars)).map(([key, value]) => ({ key, value, timestamp, step })),
    );
  }

  async #send(metrics: readonly Metric[], signal: AbortSignal): Promise<void> {
    if (!this.#isBegun) await this.#begin(signal);
    await this.#server.post("runs/log-batch", { run_id: this.#runId, metrics }, signal);
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { settings = {} } = this.#run;
    const experiment = await this.#experimentId(signal);
    const found = this.#isResumed ? await this.#find(experiment, signal) : undefined;
    this.#runId = found ?? (await this.#create(experiment, signal));
    if (found !== undefined) await this.#update("RUNNING", undefined, signal);
    const params = parametersOf(settings);
    for (let start = 0; start < params.length; start += mostParameters)
      await this.#server.post(
        "runs/log-batch",
        { run_id: this.#runId, params: params.slice(start, start + mostParameters) },
        signal,
      );
    this.#isBegun = true;
  }

  async #create(experiment: string, signal: AbortSignal): Promise<string> {
    const run = {
      ...{ experiment_id: experiment, run_name: this.#run.name, start_time: Date.now() },
      tags: [
        { key: "mlflow.source.name", value: "halfstep" },
        { key: tag, value: this.key },
      ],
    };
    return textAt(await this.#server.post("runs/create", run, signal), "run", "info", "run_id");
  }

  /** The run that an earlier process has begun. */
  async #find(experiment: string, signal: AbortSignal): Promise<string | undefined> {
    const search = {
      ...{ experiment_ids: [experiment], max_results: 1 },
      filter: `tags.\`${tag}\` = '${this.key}'`,
    };
    const found = await this.#server.post("runs/search", search, signal);
    const { runs = [] } = found as { readonly runs?: readonly unknown[] };
    return runs[0] === undefined ? undefined : textAt(runs[0], "info", "run_id");
  }

  async #experimentId(signal: AbortSignal): Promise<string> {
    const query = `experiments/get-by-name?${new URLSearchParams({ experiment_name: this.#experiment })}`;
    const found = await this.#server.get(query, signal);
    if (found !== undefined) return textAt(found, "experiment", "experiment_id");
    const created = await this.#server.post(
      "experiments/create",
      { name: this.#experiment },
      signal,
    );
    return textAt(created, "experiment_id");
  }

  #update(
    status: string,
    end: number | undefined,
    signal = AbortSignal.timeout(this.#server.patience),
  ): Promise<unknown> {
    const ended = end === undefined ? {} : { end_time: end };
    return this.#server.post("runs/update", { run_id: this.#runId, status, ...ended }, signal);
  }
}

/** MLflow takes parameters as text. */
const parametersOf = (settings: Settings): readonly { key: string; value: string }[] =>
  Object.entries(settings).flatMap(([key, value]) =>
    value === null
      ? []
      : [
          {
            key,
            value: (Array.isArray(value) ? value.join() : String(value)).slice(0, longestParameter),
          },
        ],
  );

/** The calls of the REST API. */
class Server {
  readonly address: string;
  /** Milliseconds. */
  readonly patience: number;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(address: string, patience: number) {
    this.patience = patience;
    this.address = address.replace(/\/+$/, "");
    this.#headers = { "content-type": "application/json", ...authorization() };
  }

  /** Undefined where there is no such thing. */
  async get(path: string, signal: AbortSignal): Promise<unknown> {
    const response = await this.#fetch(path, { signal });
    return response.status === 404 ? undefined : bodyOf(response);
  }

  async post(path: string, body: object, signal: AbortSignal): Promise<unknown> {
    return bodyOf(await this.#fetch(path, { method: "POST", body: JSON.stringify(body), signal }));
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(`${this.address}/api/2.0/mlflow/${path}`, {
        ...init,
        headers: this.#headers,
      });
    } catch (error) {
      // The cause of "fetch failed" says more.
      const { cause } = error as Error;
      throw cause instanceof Error ? cause : error;
    }
  }
}

async function bodyOf(response: Response): Promise<unknown> {
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`.trim());
  return response.json();
}

function authorization(): Readonly<Record<string, string>> {
  const {
    MLFLOW_TRACKING_TOKEN: token,
    MLFLOW_TRACKING_USERNAME: user,
    MLFLOW_TRACKING_PASSWORD: password = "",
  } = process.env;
  if (token) return { authorization: `Bearer ${token}` };
  if (!user) return {};
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` };
}

/** @throws Error where an answer has no text there */
function textAt(answer: unknown, ...path: readonly string[]): string {
  let found = answer;
  for (const key of path) found = (found as Readonly<Record<string, unknown>> | undefined)?.[key];
  if (typeof found === "string") return found;
  throw new Error(`its answer has no ${path.join(".")}`);
}
