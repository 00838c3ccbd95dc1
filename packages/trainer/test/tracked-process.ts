// Tracks a run by packages that are not bundled: node tracked-process.js wandb|otel. Prints what was said, and how many handlers of
// SIGINT there are.
import { setTimeout } from "node:timers/promises";
import { openTelemetryTracker } from "../src/trackers/open-telemetry.js";
import { wandbTracker } from "../src/trackers/wandb.js";
import { record, summary } from "./tracked-lines.js";

const notes: string[] = [];
const patience = Number(process.env.PATIENCE ?? 5000);
const options = { patience };
const begin = await (process.argv[2] === "otel"
  ? openTelemetryTracker(options)
  : wandbTracker(options));
const sink = begin({ name: "digits", settings: { lr: 0.5 }, onNote: (line) => notes.push(line) });
record(sink);
// As training would.
await setTimeout(500);
const listeners = process.listenerCount("SIGINT");
await sink.close(summary);
await sink.close();
process.stdout.write(JSON.stringify({ notes, listeners }));
