import type { Device } from "@halfstep/device";
import type { FromWorker, ToWorker } from "./protocol.js";
import { SavedRun } from "./saved-run.js";
import { type Compute, findCompute, nameOf, Session } from "./session.js";

// Training runs here, so that the page stays responsive whatever a step takes.

type Start = Extract<ToWorker, { type: "start" }>;

const tell = (message: FromWorker): void => postMessage(message);

const saving = SavedRun.open();
let started: Start | undefined;
let compute: Compute | undefined;
let session: Session | undefined;
/** Milliseconds for which an adapter is looked for: a browser needs some to start its GPU process again. */
let patience = 0;
/** Messages are handled in order: a run is closed before the next one opens. */
let last: Promise<void> = Promise.resolve();

async function open(start: Start, resumes: boolean): Promise<void> {
  await session?.close();
  session = undefined;
  started = start;
  if (compute === undefined) {
    compute = await findCompute(start.config, patience);
    if (compute.device) goOnAfter(compute.device);
  }
  const { device, reason } = compute;
  tell({
    type: "device",
    kind: device ? "gpu" : "cpu",
    label: device ? nameOf(device) : "the CPU",
    ...(reason !== undefined && { reason }),
  });
  session = await Session.open(start, compute, { saved: await saving, resumes }, tell);
}

/** When the device is lost, training goes on from the last saved state on the next one. */
function goOnAfter(device: Device): void {
  void device.lost.then(() => {
    tell({ type: "lost", step: session?.steps ?? 0 });
    compute = undefined;
    patience = 10_000;
    queue(async () => {
      // A start in the meantime has found a device already.
      if (compute !== undefined || started === undefined) return;
      const wasPlaying = session?.isPlaying ?? false;
      await open(started, true);
      if (wasPlaying) session?.play();
    });
  });
}

async function handle(message: ToWorker): Promise<void> {
  switch (message.type) {
    case "start":
      return open(message, message.resumes);
    case "classify":
      return session?.classify(message.pixels);
    case "save":
      return session?.save(message.setup);
    case "play":
    case "pause":
    case "step":
      void session?.[message.type]();
  }
}

function queue(work: () => Promise<void>): void {
  last = last.then(work).catch((error: unknown) => {
    tell({ type: "failed", message: error instanceof Error ? error.message : String(error) });
  });
}

addEventListener("message", ({ data }: MessageEvent<ToWorker>) => {
  // A pause must not wait for what it ends.
  if (data.type === "pause" || data.type === "start") session?.pause();
  queue(() => handle(data));
});
