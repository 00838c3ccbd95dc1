import { type Device, DeviceLostError, NoAdapterError, requestDevice } from "@halfstep/device";
import { writeSafetensors } from "@halfstep/safetensors";
import { cpuRuntime, gpuRuntime, type Runtime } from "@halfstep/tensor";
import { noGpuText } from "../site/no-gpu.js";
import { mostSteps, type TrainConfig } from "./config.js";
import { fetchDigits } from "./fetch-digits.js";
import { Lane, type SavedLane } from "./lane.js";
import { messageTurn } from "./message-turn.js";
import type { FromWorker, LaneProgress, ToWorker } from "./protocol.js";
import type { SavedRun, SavedState } from "./saved-run.js";
import { type SetupId, setupOf } from "./setups.js";
import { cpuPainter, gpuPainter, type SurfacePainter } from "./surface.js";
import { digitsTask } from "./tasks/digits.js";
import { moonsTask } from "./tasks/moons.js";
import type { Task, TaskParts } from "./tasks/task.js";
import { textTask } from "./tasks/text.js";

type Start = Extract<ToWorker, { type: "start" }>;
type Tell = (message: FromWorker) => void;

/** A device, or the reason why there is none. */
export interface Compute {
  readonly device?: Device;
  readonly reason?: string;
}

/** Milliseconds of training between two reports. */
const reportInterval = 60;
/** Milliseconds between two looks at all gradients, and at images that training does not see. */
const lookInterval = 700;
/** Milliseconds between two states that are saved. */
const saveInterval = 2000;
const charactersAtOnce = 2;

/** The GPU, or the reason why training falls back to the CPU. `patience` is how many milliseconds it may take to appear. */
export async function findCompute({ compute }: TrainConfig, patience: number): Promise<Compute> {
  if (compute === "cpu") return { reason: "The address asks for the CPU." };
  const until = performance.now() + patience;
  for (;;)
    try {
      return { device: await requestDevice() };
    } catch (error) {
      if (!(error instanceof NoAdapterError)) throw error;
      if (performance.now() >= until) return { reason: noGpuText(error) };
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
}

/** Where a session saves its lanes, and whether it goes on from there. */
interface Saving {
  readonly saved: SavedRun;
  readonly resumes: boolean;
}

/** What an adapter calls itself. */
export function nameOf({ capabilities }: Device): string {
  const { description, device, architecture, vendor } = capabilities.adapter;
  return description || device || `${vendor} ${architecture}`.trim() || "an adapter without a name";
}

/** How much a report says: losses, also what takes a read of all gradients, also what takes a read of all weights. */
type Depth = "glance" | "look" | "rest";

/** Lanes in training, side by side: one step of each at a time. */
export class Session {
  readonly #lanes: readonly Lane[];
  readonly #painters: ReadonlyMap<Lane, SurfacePainter>;
  readonly #saved: SavedRun;
  readonly #run: string;
  readonly #tell: Tell;
  #isPlaying = false;
  #isEnded = false;
  #lastLook = -Infinity;
  #lastSave = performance.now();
  /** Commands run one after another. */
  #queue: Promise<void> = Promise.resolve();

  private constructor(
    lanes: readonly Lane[],
    painters: Map<Lane, SurfacePainter>,
    saved: SavedRun,
    run: string,
    tell: Tell,
  ) {
    this.#lanes = lanes;
    this.#painters = painters;
    this.#saved = saved;
    this.#run = run;
    this.#tell = tell;
  }

  /** Makes the lanes of a configuration as they were saved, or new ones, and shows them. */
  static async open(
    start: Start,
    { device }: Compute,
    { saved, resumes }: Saving,
    tell: Tell,
  ): Promise<Session> {
    const { config, canvases, colours } = start;
    const makeTask = await taskMaker(start);
    const newRuntime = (): Runtime =>
      device
        ? gpuRuntime(device, { provenance: "afterSkip" })
        : cpuRuntime({ provenance: "afterSkip" });
    const lanes = config.setups.map((id) => new Lane(newRuntime(), setupOf(id), config, makeTask));
    const painters = new Map<Lane, SurfacePainter>();
    for (const [i, canvas] of canvases.entries()) {
      const painter =
        device && !device.capabilities.adapter.isFallback
          ? gpuPainter(device, canvas, colours)
          : cpuPainter(canvas, colours);
      painters.set(lanes[i] as Lane, painter);
    }
    // The CPU may train another model in place of a large one.
    const run = JSON.stringify([config, device ? "gpu" : "cpu"]);
    const session = new Session(lanes, painters, saved, run, tell);
    const from = resumes ? await saved.find(run) : undefined;
    if (resumes) session.#restore(from ?? { step: 0, lanes: {} });
    if (!from) await saved.clear();
    await session.#inTurn(() => session.#paint());
    return session;
  }

  /** Steps so far: of the lane that has most. */
  get steps(): number {
    return Math.max(...this.#lanes.map(({ steps }) => steps));
  }

  get isPlaying(): boolean {
    return this.#isPlaying;
  }

  play(): void {
    if (this.#isPlaying) return;
    this.#isPlaying = true;
    void this.#inTurn(async () => {
      while (this.#isPlaying && !this.#isEnded) {
        await this.#tick(performance.now() + reportInterval);
        await messageTurn();
      }
      await this.#rest();
    });
  }

  pause(): void {
    this.#isPlaying = false;
  }

  step(): Promise<void> {
    this.pause();
    return this.#inTurn(async () => {
      await this.#tick(-Infinity);
      await this.#rest();
    });
  }

  /** Probabilities of an image by lane. */
  classify(pixels: Float32Array): Promise<void> {
    return this.#between(async () => {
      const probabilities: Float32Array[] = [];
      for (const { task } of this.#lanes) {
        if (task.view.kind === "images") probabilities.push(await task.view.classify(pixels));
      }
      this.#tell({ type: "classified", probabilities });
    });
  }

  /** The parameters of a lane as a file. */
  save(setup: SetupId): Promise<void> {
    return this.#between(async () => {
      const lane = this.#lanes.find((each) => each.setup.id === setup);
      if (lane === undefined) return;
      const state = await lane.task.model.stateDict({ dtype: "float32" });
      const tensors = Object.entries(state).map(([name, { shape, data }]) => [
        name,
        { dtype: "F32" as const, shape, data: Float32Array.from(data) },
      ]);
      const bytes = writeSafetensors(Object.fromEntries(tensors), {
        metadata: { format: "pt", setup, steps: String(lane.steps) },
      });
      this.#tell({ type: "saved", name: `${setup}-step-${lane.steps}.safetensors`, bytes });
    });
  }

  /** Ends training and releases all memory. */
  async close(): Promise<void> {
    this.#isEnded = true;
    await this.#queue;
    for (const lane of this.#lanes) lane.dispose();
  }

  #restore({ step, lanes }: SavedState): void {
    for (const lane of this.#lanes) {
      const state = lanes[lane.setup.id];
      if (state) lane.restore(state);
    }
    const known = Object.entries(lanes).map(
      ([id, { points, origin, failure }]): LaneProgress => ({
        id: id as SetupId,
        points,
        ...(origin !== undefined && { origin }),
        ...(failure !== undefined && { failure }),
      }),
    );
    this.#tell({ type: "resumed", step, lanes: known });
  }

  async #save(): Promise<void> {
    this.#lastSave = performance.now();
    const lanes = await Promise.all(
      this.#lanes.map(
        async (lane): Promise<[SetupId, SavedLane]> => [lane.setup.id, await lane.state()],
      ),
    );
    await this.#saved.save(this.#run, { step: this.steps, lanes: Object.fromEntries(lanes) });
  }

  /** Does something between two ticks, and plays on. */
  async #between(work: () => Promise<void>): Promise<void> {
    const wasPlaying = this.#isPlaying;
    this.pause();
    await this.#inTurn(work);
    if (wasPlaying) this.play();
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#queue = this.#queue
      .then(() => (this.#isEnded ? undefined : work()))
      .catch((error: unknown) => {
        this.#isEnded = true;
        // The worker hears of the loss from the device, and makes another session.
        if (error instanceof DeviceLostError) return;
        this.#tell({
          type: "failed",
          message: error instanceof Error ? error.message : String(error),
        });
      });
    return this.#queue;
  }

  /** Steps until a time, at least one, and a report. */
  async #tick(until: number): Promise<void> {
    do {
      for (const lane of this.#running()) {
        await lane.step({
          onCompile: (progress) => this.#tell({ type: "compiling", ...progress }),
        });
      }
    } while (performance.now() < until && this.#running().length > 0);
    if (this.#running().length === 0) this.pause();
    const now = performance.now();
    const isLook = now - this.#lastLook > lookInterval;
    if (isLook) this.#lastLook = now;
    await this.#report(isLook ? "look" : "glance");
    if (now - this.#lastSave > saveInterval) await this.#save();
  }

  /** What is known and kept only when no step follows. */
  async #rest(): Promise<void> {
    if (this.#isEnded) return;
    await this.#report("rest");
    await this.#save();
  }

  async #report(depth: Depth): Promise<void> {
    const lanes = await Promise.all(this.#lanes.map((lane) => reportOf(lane, depth)));
    await this.#paint();
    this.#tell({ type: "progress", lanes, isPlaying: this.#isPlaying });
  }

  #running(): readonly Lane[] {
    return this.#lanes.filter(({ failure, steps }) => failure === undefined && steps < mostSteps);
  }

  async #paint(): Promise<void> {
    for (const [lane, paint] of this.#painters) {
      if (lane.task.view.kind !== "surface") continue;
      using logits = await lane.task.view.surface();
      await paint(logits);
    }
  }
}

async function reportOf(lane: Lane, depth: Depth): Promise<LaneProgress> {
  const isLook = depth !== "glance";
  const points = await lane.points();
  const { view } = lane.task;
  const { origin, failure } = lane;
  const hash = depth === "rest" ? await lane.hash() : undefined;
  return {
    id: lane.setup.id,
    points,
    ...(isLook && { statistics: await lane.statistics() }),
    ...(isLook && view.kind === "images" && { accuracy: await view.accuracy() }),
    ...(view.kind === "text" && depth !== "rest" && { text: await view.write(charactersAtOnce) }),
    ...(hash !== undefined && { hash }),
    ...(origin !== undefined && { origin }),
    ...(failure !== undefined && { failure }),
  };
}

async function taskMaker({ config, base }: Start): Promise<(parts: TaskParts) => Task> {
  switch (config.task) {
    case "moons":
      return moonsTask;
    case "text":
      return textTask;
    case "digits": {
      const digits = await fetchDigits(base);
      return (parts) => digitsTask(parts, digits);
    }
  }
}
