// Trackers of experiments by their own libraries, with servers on the loopback: ones that answer, that refuse, that never answer, and none.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { nodeFlags } from "@halfstep/vitest/node-flags";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { MetricsSink } from "../src/trackers/metrics-sink.js";
import { mlflowTracker } from "../src/trackers/mlflow.js";
import { failureOfPeers, MissingPackageError } from "../src/trackers/peer-package.js";
import { bundleProcess } from "./bundle.js";
import {
  type Answer,
  deadAddress,
  type LoopbackServer,
  loopbackServer,
  type Received,
} from "./loopback-server.js";
import { record, summary } from "./tracked-lines.js";

afterEach(() => vi.unstubAllEnvs());

/** Records a run at a sink. */
async function track(sink: MetricsSink): Promise<void> {
  record(sink);
  await sink.close(summary);
  await sink.close();
}

describe("MLflow", () => {
  const answer = ({ path }: Received): Answer => {
    if (path.includes("get-by-name")) return [404, { error_code: "RESOURCE_DOES_NOT_EXIST" }];
    if (path.endsWith("experiments/create")) return [200, { experiment_id: "7" }];
    if (path.endsWith("runs/search")) return [200, { runs: [{ info: { run_id: "r0" } }] }];
    if (path.endsWith("runs/create")) return [200, { run: { info: { run_id: "r1" } } }];
    return [200, {}];
  };
  const pathsOf = ({ received }: LoopbackServer): readonly string[] =>
    received.map(({ path }) => path.replace("/api/2.0/mlflow/", ""));
  // A machine whose cores others use may take long to answer itself.
  const patience = 120_000;
  const settings = { lr: 0.5, precision: ["float16"], limit: null, seed: 3 };

  it("gets settings, steps, evaluations and the test of a run", async () => {
    await using server = await loopbackServer(answer);
    vi.stubEnv("MLFLOW_TRACKING_TOKEN", "secret");
    const notes: string[] = [];
    const run = { name: "digits float16", settings, onNote: (line: string) => notes.push(line) };
    const sink = mlflowTracker({
      ...{ trackingUri: `${server.address}/`, experiment: "mine", patience },
    })(run);
    await track(sink);
    expect(notes).toEqual([]);
    expect(pathsOf(server)).toEqual([
      ...["experiments/get-by-name?experiment_name=mine", "experiments/create", "runs/create"],
      ...["runs/log-batch", "runs/log-batch", "runs/update"],
    ]);
    const [, , created, params, metrics, ended] = server.received.map(({ body }) => body);
    expect(created).toMatchObject({ experiment_id: "7", run_name: "digits float16" });
    expect(params?.params).toEqual([
      { key: "lr", value: "0.5" },
      { key: "precision", value: "float16" },
      { key: "seed", value: "3" },
    ]);
    const logged = metrics?.metrics as { key: string; value: number; step: number }[];
    expect(logged.map(({ key, value, step }) => `${step} ${key} ${value}`)).toEqual([
      ...["1 train/loss 2.5", "1 train/lr 0.5", "1 train/loss scale 1024", "1 train/epoch 1"],
      ...["2 train/lr 0.5", "2 train/loss scale 1024", "2 train/epoch 1"],
      "2 evaluation/accuracy 0.75",
      ...["3 train/loss 1.5", "3 train/lr 0.25", "3 train/loss scale 512", "3 train/epoch 2"],
      ...["3 test/loss 0.5", "3 test/accuracy 0.875"],
    ]);
    expect(ended).toMatchObject({ run_id: "r1", status: "FINISHED" });
    expect(server.received.every(({ headers }) => headers.authorization === "Bearer secret")).toBe(
      true,
    );
    const { key } = ((await sink.stateDict?.()) ?? {}) as { readonly key?: string };
    expect(created?.tags).toContainEqual({ key: "halfstep.key", value: key });
  });

  it("goes on in the run of a checkpoint, and is told where training was stopped", async () => {
    await using server = await loopbackServer(answer);
    const sink = mlflowTracker({ trackingUri: server.address, patience })({
      ...{ name: "x", onNote: () => {} },
    });
    sink.loadStateDict?.({ key: "k-1" } as never);
    record(sink);
    await sink.close();
    expect(pathsOf(server).slice(2)).toEqual([
      ...["runs/search", "runs/update", "runs/log-batch", "runs/update"],
    ]);
    expect(server.received[2]?.body.filter).toBe("tags.`halfstep.key` = 'k-1'");
    expect(() => sink.loadStateDict?.({ key: "' OR" } as never)).toThrow("needs its key");
    expect(server.received.slice(3).map(({ body }) => [body.run_id, body.status])).toEqual([
      ...[
        ["r0", "RUNNING"],
        ["r0", undefined],
        ["r0", "KILLED"],
      ],
    ]);
  });

  it("that refuses, or is not there, is said once", async () => {
    await using refusing = await loopbackServer(() => [503, {}]);
    for (const [address, reason] of [
      [refusing.address, "503 Service Unavailable"],
      [await deadAddress(), "connect ECONNREFUSED"],
    ] as const) {
      const notes: string[] = [];
      const run = { name: "x", onNote: (line: string) => notes.push(line) };
      await track(mlflowTracker({ trackingUri: address })(run));
      expect(notes).toEqual([
        expect.stringContaining(`MLflow at ${address} cannot be logged to (${reason}`),
        `14 figures did not reach MLflow at ${address}`,
      ]);
    }
  });

  it("needs the address of a server", () => {
    vi.stubEnv("MLFLOW_TRACKING_URI", "");
    expect(() => mlflowTracker()).toThrow("MLFLOW_TRACKING_URI is not set: give the address");
    expect(() => mlflowTracker({ trackingUri: "./mlruns" })).toThrow("is ./mlruns: give");
    expect(() => mlflowTracker({ trackingUri: "sqlite:///x.db" })).toThrow("give the address");
  });
});

/** Tracks a run in a process of its own, where packages may do what they like. */
async function tracked(by: "wandb" | "otel", env: Readonly<Record<string, string>>) {
  const program = await bundleProcess("tracked-process");
  const child = spawn(process.execPath, [...nodeFlags, program, by], {
    env: { ...process.env, ...env },
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (text) => {
    stdout += text;
  });
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  const [code] = await once(child, "close");
  return { code, stderr, ...JSON.parse(stdout) };
}

const wandb = (address: string, env: Readonly<Record<string, string>> = {}) =>
  tracked("wandb", { WANDB_BASE_URL: address, WANDB_API_KEY: "k".repeat(40), ...env });

/** Threads begin later than sending may take, as on a busy machine. */
const lateThreads = encodeURIComponent(
  'import{isMainThread}from"node:worker_threads";' +
    "if(!isMainThread){process.emitWarning('a module','DeprecationWarning');Atomics.wait(new Int32Array(new SharedArrayBuffer(4)),0,0,6000)}",
);

const exported = (address: string, env: Readonly<Record<string, string>> = {}) =>
  tracked("otel", { OTEL_EXPORTER_OTLP_ENDPOINT: address, OTEL_SERVICE_NAME: "mine", ...env });

/** Servers that answer have longer, because a busy machine needs it. */
const patient = { PATIENCE: "50000", OTEL_METRIC_EXPORT_INTERVAL: "50000" };

describe("OpenTelemetry", () => {
  it("gets the last figures of a run by OTLP", { timeout: 60_000 }, async () => {
    await using server = await loopbackServer(() => [200, {}]);
    const ended = await exported(server.address, patient);
    expect(ended).toMatchObject({ code: 0, stderr: "", notes: [] });
    expect(server.received.map(({ path }) => path)).toEqual(["/v1/metrics"]);
    const text = JSON.stringify(server.received[0]?.body);
    expect(text).toContain('{"key":"service.name","value":{"stringValue":"mine"}}');
    expect(text).toContain('"halfstep.run"');
    const values = [...text.matchAll(/"name":"(halfstep[\w.]+)".*?"asDouble":([\d.]+)/g)];
    expect(Object.fromEntries(values.map(([, name, value]) => [name, Number(value)]))).toEqual({
      ...{ "halfstep.train.loss": 1.5, "halfstep.train.lr": 0.25, "halfstep.train.epoch": 2 },
      ...{ "halfstep.train.loss_scale": 512, "halfstep.train.step": 3 },
      "halfstep.evaluation.accuracy": 0.75,
      ...{ "halfstep.test.loss": 0.5, "halfstep.test.accuracy": 0.875 },
    });
  });

  it("that refuses is said once", { timeout: 60_000 }, async () => {
    await using server = await loopbackServer(() => [400, {}]);
    const { code, notes } = await exported(server.address, patient);
    expect(code).toBe(0);
    expect(notes).toEqual([
      expect.stringMatching(
        /^OpenTelemetry's metrics cannot be exported \(.+\): training goes on$/,
      ),
    ]);
  });
});

describe("Weights & Biases", () => {
  const answer = ({ path, body }: Received): Answer => {
    if (path !== "/graphql") return [200, {}];
    return String(body.query).includes("query Viewer")
      ? [200, { data: { viewer: { id: "1", entity: "me", flags: "{}", teams: { edges: [] } } } }]
      : [
          200,
          { data: { upsertBucket: { bucket: { id: "1", displayName: "x" }, inserted: true } } },
        ];
  };

  it("gets a line of history for each step, however late its thread begins, and whatever it warns of", {
    timeout: 60_000,
  }, async () => {
    await using server = await loopbackServer(answer);
    const { code, notes, listeners } = await wandb(server.address, {
      ...patient,
      NODE_OPTIONS: `--import=data:text/javascript,${lateThreads}`,
    });
    expect(code).toBe(0);
    expect(notes).toEqual([expect.stringMatching(/shows the run at .*\/me\/halfstep\/runs\/\w+$/)]);
    // Signals stay those of the program.
    expect(listeners).toBe(0);
    const [, upsert] = server.received.map(({ body }) => body);
    expect(upsert?.variables).toMatchObject({ displayName: "digits", config: '{"lr":0.5}' });
    const lines = server.received
      .flatMap(({ body }) => {
        const files = (body.files ?? {}) as Record<string, { content: string[] }>;
        return files["wandb-history.jsonl"]?.content ?? [];
      })
      .map((line) => JSON.parse(line));
    expect(lines.map(({ _runtime, _timestamp, ...line }) => line)).toEqual([
      { "train/loss": 2.5, "train/lr": 0.5, "train/loss scale": 1024, "train/epoch": 1, _step: 1 },
      {
        ...{ "train/lr": 0.5, "train/loss scale": 1024, "train/epoch": 1 },
        ...{ "evaluation/accuracy": 0.75, _step: 2 },
      },
      {
        ...{ "train/loss": 1.5, "train/lr": 0.25, "train/loss scale": 512, "train/epoch": 2 },
        ...{ "test/loss": 0.5, "test/accuracy": 0.875, _step: 3 },
      },
    ]);
    expect(server.received.at(-1)?.body).toMatchObject({ complete: true, exitcode: 0 });
  });

  it("that is not there is said once, and ends nothing", { timeout: 60_000 }, async () => {
    const ended = await wandb(await deadAddress());
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(ended.notes).toEqual([
      expect.stringMatching(/^Weights & Biases cannot be logged to \(.+\): training goes on$/),
    ]);
  });
});

describe("servers that fail", () => {
  const answers: Readonly<Record<string, Answer>> = {
    "never answer": "never",
    "close connections in the middle of an answer": "a part",
    "answer 500": [500, {}],
  };

  // Closing takes five seconds for each tracker where nothing is answered.
  it.each(Object.entries(answers))(
    "and %s are said once, and end nothing",
    { timeout: 60_000 },
    async (_, answer) => {
      await using server = await loopbackServer(() => answer);
      const { address } = server;
      const notes: string[] = [];
      const run = { name: "x", onNote: (line: string) => notes.push(line) };
      const [otel, ofWandb] = await Promise.all([
        exported(address),
        wandb(address),
        track(mlflowTracker({ trackingUri: address })(run)),
      ]);
      expect(notes).toEqual([
        expect.stringMatching(/^MLflow at \S+ cannot be logged to \(.+\): training goes on$/),
        `14 figures did not reach MLflow at ${address}`,
      ]);
      expect(otel).toMatchObject({ code: 0, stderr: "" });
      // OpenTelemetry's figures have arrived where an answer has begun.
      const silent = answer === "a part";
      expect(otel.notes).toEqual(
        silent
          ? []
          : [
              expect.stringMatching(
                /^OpenTelemetry's metrics cannot be exported \(.+\): training goes on$/,
              ),
            ],
      );
      expect(ofWandb).toMatchObject({ code: 0, stderr: "" });
      expect(ofWandb.notes).toEqual([
        expect.stringMatching(/^Weights & Biases cannot be logged to \(.+\): training goes on$/),
      ]);
    },
  );
});

it("a package that is missing is named with what installs it", async () => {
  const load = async (): Promise<unknown> => {
    try {
      return await import("@halfstep/none" as string);
    } catch (error) {
      throw failureOfPeers(error, "Nothing needs", ["a", "b"]);
    }
  };
  await expect(load()).rejects.toBeInstanceOf(MissingPackageError);
  await expect(load()).rejects.toThrow("Nothing needs a, b: npm install a b");
  const other = new Error("it is broken");
  expect(failureOfPeers(other, "Nothing needs", ["a"])).toBe(other);
});
