// Checkpoints that others made, or that something has changed: every field of every state, missing, null, of the wrong type, negative,
// huge. Training goes on, or refuses them in one line that names the checkpoint, and then leaves the run folder as it was.
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuRuntime } from "@halfstep/tensor";
import { hostileTrees, hostileValues, opening } from "@halfstep/vitest/hostile";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Checkpoint } from "../src/checkpoint/checkpoint.js";
import { exitCodeOf } from "../src/cli/program.js";
import { RunFolder } from "../src/run-folder.js";
import { trainResumable } from "./resumable.js";

const parent = mkdtempSync(join(tmpdir(), "halfstep-hostile-runs-"));
afterAll(() => rmSync(parent, { recursive: true }));
const template = join(parent, "template");
const directory = join(parent, "run");
let checkpoint: Checkpoint;

/** Training until the middle of an accumulation, or on from a checkpoint. */
async function run(out: string, resume: Checkpoint | undefined, microSteps: number): Promise<void> {
  const folder = new RunFolder(out);
  // To write checkpoints is what takes time.
  if (resume) Object.assign(folder, { checkpoints: { save: async () => {} } });
  const controller = new AbortController();
  try {
    await trainResumable({
      ...{ runtime: cpuRuntime(), folder, resume },
      onMicroStep: (count) => count === microSteps && controller.abort(),
      options: { signal: controller.signal },
    });
  } finally {
    folder.close();
  }
}

const restore = (): void => {
  rmSync(directory, { recursive: true, force: true });
  cpSync(template, directory, { recursive: true });
};

const contentOf = (out: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    ["metrics.jsonl", "summary.json", "checkpoints"].map((name) => [
      name,
      name === "checkpoints"
        ? readdirSync(join(out, name)).join()
        : existsSync(join(out, name))
          ? readFileSync(join(out, name), "utf8")
          : "",
    ]),
  );

let before: ReturnType<typeof contentOf>;

beforeAll(async () => {
  await run(template, undefined, 6);
  const folder = new RunFolder(template);
  checkpoint = (await folder.checkpoints.newest()).checkpoint as Checkpoint;
  folder.close();
  // What came after the checkpoint.
  const [line] = readFileSync(join(template, "metrics.jsonl"), "utf8").split("\n");
  writeFileSync(join(template, "metrics.jsonl"), `${line}\n`, { flag: "a" });
  writeFileSync(join(template, "summary.json"), "{}");
  before = contentOf(template);
  restore();
});

/** "opened", or the line of a refusal that left everything as it was. */
async function goingOn(parts: Checkpoint["parts"]): Promise<string> {
  let said = "an error";
  try {
    said = await opening(() => run(directory, { ...checkpoint, parts }, 1), exitCodeOf);
    if (said === "opened") return said;
    expect(said.startsWith(checkpoint.path) || said.startsWith(directory), said).toBe(true);
    expect(contentOf(directory), said).toEqual(before);
    return said;
  } finally {
    if (said === "opened" || said === "an error") restore();
  }
}

it("has all parts of training in the middle of an accumulation", () => {
  expect(Object.keys(checkpoint.parts).sort()).toEqual(
    [
      "dropout",
      "ema",
      "gradients",
      "hooks",
      "log",
      "model",
      "optimizer",
      "scaler",
      "training",
    ].sort(),
  );
});

// The others are for files that are read without training on from them. Tensors have the same fields again and again.
const kinds = new Set(["missing", "null", "of a wrong type", "minus five", "beyond integers"]);
const kindsOfTensors = new Set(["missing", "of a wrong type"]);
const ofTensors = new Set(["gradients", "ema", "optimizer", "model"]);

it.each([
  "training",
  "scaler",
  "hooks",
  "log",
  "dropout",
  "gradients",
  "ema",
  "optimizer",
  "model",
])("%s with a field that nobody meant is refused, or changes nothing", async (name) => {
  const part = checkpoint.parts[name] as Readonly<Record<string, unknown>>;
  for (const { kind, config } of hostileTrees(part))
    if ((ofTensors.has(name) ? kindsOfTensors : kinds).has(kind))
      await goingOn({ ...checkpoint.parts, [name]: config });
  for (const value of Object.values(hostileValues))
    await goingOn({ ...checkpoint.parts, [name]: value });
});
