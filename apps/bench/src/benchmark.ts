import { cpus, loadavg } from "node:os";
import { listAdapters, requestDevice } from "@halfstep/device/node";
import { engineReport } from "@halfstep/kernels";
import { beforeLane, laneNames, ours } from "./lanes/names.js";
import { findTorch } from "./lanes/torch.js";
import { measureWorkload } from "./measure.js";
import type { BenchOptions } from "./options.js";
import { UsageError } from "./options.js";
import { installPeers, peersFolder } from "./peers.js";
import { productLines } from "./report/products.js";
import type { Limits, Machine, Report, Row } from "./results.js";
import type { Case, Workload } from "./workload.js";
import { workloads } from "./workloads/index.js";

/**
 * How much longer repetitions of training are: steps follow each other in a loop, where the host records the next while the device
 * computes one.
 */
const stepsOfLoop = 10;

/** Runs all chosen workloads on one adapter, and reports the results so far after each. `program` is the bundle that lanes run. */
export async function* benchmark(
  options: BenchOptions,
  program: string,
  say: (line: string) => void,
): AsyncGenerator<Report> {
  const started = performance.now();
  const machine = await describeMachine(options.adapter);
  const chosen = chosenWorkloads(options, machine);
  say(`${machine.adapter} · ${machine.processor} · load ${machine.load[0].toFixed(1)}`);
  for (const line of productLines(machine)) say(line);
  const missing = new Map<string, string>();
  const peersProblem = options.withPeers ? await installPeers(peersFolder, say) : undefined;
  if (peersProblem !== undefined) say(`${peersProblem}; going on without peers`);
  const python = options.withPeers ? await findTorch(options.python) : undefined;
  if (python !== undefined) process.env.HALFSTEP_BENCH_PYTHON = python;
  const own = options.before === undefined ? [ours] : [ours, beforeLane(options.before)];
  const peers = laneNames.filter(
    (lane) =>
      lane !== ours && options.withPeers && (lane.library !== "torch" || python !== undefined),
  );
  const wanted = [...own, ...peers];
  const lanes = peersProblem === undefined ? wanted : own;
  if (peersProblem !== undefined) for (const { name } of peers) missing.set(name, peersProblem);

  const rows: Row[] = [];
  const limits: Record<string, Limits> = {};
  const versions = new Map<string, string>();
  for (const { workload, isChosen } of chosen) {
    say(`${workload.title} (${workload.name}) …`);
    const measured = await measureWorkload(workload, {
      lanes,
      peersFolder,
      program,
      rounds: options.rounds,
      processes: options.processes,
      repetition: (options.isQuick ? 20 : 50) * (workload.level === "operation" ? 1 : stepsOfLoop),
      budget: options.isQuick ? 3000 : 15_000,
      isSoftware: machine.isSoftware,
      patience: options.isQuick ? 60_000 : 180_000,
      isChosen,
      say,
    });
    rows.push(...measured.rows);
    limits[workload.name] = measured.limits;
    for (const [lane, version] of measured.versions) versions.set(lane, version);
    for (const [lane, reason] of measured.missing) missing.set(lane, reason);
    for (const [lane, reason] of measured.missing) say(`  ${lane} did not open: ${reason}`);
    yield {
      schema: 2,
      date: new Date().toISOString(),
      mode: options.isQuick ? "quick" : "full",
      rounds: options.rounds,
      processes: options.processes,
      machine: { ...machine, load: [machine.load[0], loadavg()[0] as number] },
      lanes: wanted.map(({ name, title }) => ({
        name,
        title,
        ...(versions.has(name) && { version: versions.get(name) as string }),
        ...(missing.has(name) && { missing: missing.get(name) as string }),
      })),
      limits,
      rows,
      wallSeconds: Math.round((performance.now() - started) / 1000),
    };
  }
}

export interface Chosen {
  readonly workload: Workload;
  readonly isChosen: (candidate: Case) => boolean;
}

export function chosenWorkloads(
  { only, isQuick }: BenchOptions,
  { isSoftware }: Machine,
): Chosen[] {
  const chosen = workloads.flatMap((workload): Chosen[] => {
    const isNamed = ({ name }: { readonly name: string }) =>
      only.length === 0 || only.some((part) => name.toLowerCase().includes(part.toLowerCase()));
    const isChosen = (candidate: Case) =>
      (!isQuick || candidate.isQuick) &&
      !(isSoftware && candidate.isForHardware) &&
      (isNamed(workload) || isNamed(candidate));
    return workload.cases.some(isChosen) ? [{ workload, isChosen }] : [];
  });
  if (chosen.length === 0)
    throw new UsageError(
      `--only ${only.join()} names nothing${isQuick ? " that --quick runs" : ""} on ${isSoftware ? "a software adapter" : "this adapter"}: workloads are ${workloads.map(({ name }) => name).join(", ")}`,
    );
  return chosen;
}

/** Opens the adapter once, so that every lane can be told its full name, and describes it. */
export async function describeMachine(adapter: string | undefined): Promise<Machine> {
  if (adapter !== undefined) process.env.HALFSTEP_ADAPTER = adapter;
  const device = await requestDevice();
  const { adapter: found, tier, features } = device.capabilities;
  if (process.env.HALFSTEP_ADAPTER) {
    const names = await listAdapters();
    const full = names.find((name) => name === found.device || name === found.description);
    process.env.HALFSTEP_ADAPTER = full ?? process.env.HALFSTEP_ADAPTER;
  }
  const products = engineReport(device);
  device.destroy();
  const [before = 0] = loadavg();
  return {
    adapter: [found.vendor, found.device, found.description].filter(Boolean).join(" · "),
    tier,
    products,
    isSoftware: found.isFallback,
    features: [...features].sort(),
    processor: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    platform: `${process.platform} ${process.arch}`,
    node: process.versions.node,
    load: [before, before],
  };
}
