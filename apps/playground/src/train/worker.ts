import type { FromWorker, ToWorker } from "./protocol.js";
import { type Compute, findCompute, nameOf, Session } from "./session.js";

// Training runs here, so that the page stays responsive whatever a step takes.

const tell = (message: FromWorker): void => postMessage(message);

let compute: Compute | undefined;
let session: Session | undefined;
/** Messages are handled in order: a run is closed before the next one opens. */
let last: Promise<void> = Promise.resolve();

async function handle(message: ToWorker): Promise<void> {
  switch (message.type) {
    case "start": {
      await session?.close();
      session = undefined;
      compute ??= await findCompute(message.config);
      const { device, reason } = compute;
      tell({
        type: "device",
        kind: device ? "gpu" : "cpu",
        label: device ? nameOf(device) : "the CPU",
        ...(reason !== undefined && { reason }),
      });
      session = await Session.open(message, compute, tell);
      return;
    }
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

addEventListener("message", ({ data }: MessageEvent<ToWorker>) => {
  // A pause must not wait for what it ends.
  if (data.type === "pause" || data.type === "start") session?.pause();
  last = last
    .then(() => handle(data))
    .catch((error: unknown) => {
      tell({ type: "failed", message: error instanceof Error ? error.message : String(error) });
    });
});
